"""Tokens and sequences for a user: what is refused, and what predictions depend on."""

import json
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file

MODEL = "embedding 300 8; conv 4 1x1 relu; globalpool; dense 2 softmax"


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """60 items of 6 tokens: the class is whether 299 is among them."""
    folder = tmp_path_factory.mktemp("sequences")
    values = np.random.default_rng(3).integers(0, 299, (60, 6)).astype(np.float32)
    values[::2, 2] = 299
    np.save(folder / "x.npy", values)
    np.save(folder / "y.npy", (np.arange(60) % 2).astype(np.uint8))
    return folder, values


def run(quern, *words):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)


def train(quern, folder, *more, model=MODEL, data="x.npy"):
    return run(quern, "train", "--data", folder / data, "--labels", folder / "y.npy", "--model", model,
               "--epochs", 1, "-o", folder / "m.st", *more)


@pytest.mark.parametrize("value, said", [(300, "300"), (2.5, "2.5"), (-1, "-1")])
def test_a_value_that_is_no_token_is_named(quern, tokens, value, said):
    folder, values = tokens
    wrong = values.copy()
    wrong[41, 3] = value
    np.save(folder / "wrong.npy", wrong)
    done = train(quern, folder, data="wrong.npy")
    assert done.returncode != 0 and f"{said} is not the number of a token below 300" in done.stderr
    assert "item 41, value 3" in done.stderr and "0 to 299" in done.stderr
    assert train(quern, folder).returncode == 0
    done = run(quern, "predict", folder / "m.st", "--data", folder / "wrong.npy")
    assert done.returncode != 0 and "item 41, value 3" in done.stderr


@pytest.mark.parametrize("model, more, said", [
    (MODEL, ["--scale", "standard"], "`--scale`"),
    (MODEL, ["--mixup", "0.2"], "mixup"),
    ("conv 2 1x1; " + MODEL, ["--shape", "1x1x6"], "stands after another layer"),
    ("residual { " + MODEL.replace("; globalpool", " | conv 4 1x1 }; globalpool"), [], "reads the numbers of tokens"),
    ("embedding 300; dense 2 softmax", [], "width"),
    ("embedding 20000000 4; dense 2 softmax", [], "16777216"),
    ("embedding 16777216 4096; dense 2 softmax", [], "68719476736 parameters"),
])
def test_what_does_not_fit_is_refused(quern, tokens, model, more, said):
    done = train(quern, tokens[0], *more, model=model)
    assert done.returncode != 0 and said.strip("`") in done.stderr, done.stderr


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """Items of 9 tokens below 300 that count up, modulo 300; every third ends early."""
    folder = tmp_path_factory.mktemp("next")
    values = (np.arange(90)[:, None] * 37 + np.arange(9)) % 300
    values[::3, 6:] = 65535
    np.save(folder / "x.npy", values.astype(np.uint16))
    return folder


def learn(quern, folder, *more, model="embedding 300 24; conv 300 1x1 softmax"):
    return run(quern, "train", "--data", folder / "x.npy", "--tokens", "ids", "--task", "next", "--model", model, "-o",
               folder / "m.st", "--optimizer", "adam", "--lr", "0.03", "--batch", 30, *more)


def test_the_next_token_is_learned(quern, counting):
    """After each token one other comes, in all items. 65535 is no target."""
    done = learn(quern, counting, "--epochs", 40, "--test", counting / "x.npy")
    assert done.returncode == 0, done.stderr
    last = [line for line in done.stderr.splitlines() if " 40/40 " in line][0].split()
    assert "perplexity" in done.stderr and "90 items of 9 tokens; test set of 90" in done.stderr, done.stderr
    loss, accuracy, perplexity = float(last[5]), float(last[6]), float(last[8])
    assert accuracy == 100 and loss < 0.2 and abs(perplexity - np.exp(loss)) < 1e-3
    told = run(quern, "model", "show", counting / "m.st", "--json").stdout
    recipe = json.loads(told)["recipe"] if "recipe" in json.loads(told) else json.loads(told)
    assert "next" in json.dumps(recipe)


def test_training_goes_on_from_such_a_model(quern, counting):
    """Tokens without labels come next, as the model has it."""
    assert learn(quern, counting, "--epochs", 1).returncode == 0
    again = ["train", "--data", counting / "x.npy", "--init-from", counting / "m.st", "--epochs", 1, "-o",
             counting / "on.st"]
    done = run(quern, *again)
    assert done.returncode == 0 and "perplexity" in done.stderr, done.stderr
    told = (counting / "on.st").read_bytes()
    assert run(quern, *again, "--tokens", "ids", "--task", "next").returncode == 0
    assert (counting / "on.st").read_bytes() == told
    done = run(quern, *again, "--new-last")
    assert done.returncode != 0 and "no classes for new outputs" in done.stderr, done.stderr


def test_another_text_has_the_tokenizer_of_the_model(quern, tmp_path):
    """Its characters are not learned again."""
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n" * 20)
    (tmp_path / "b.txt").write_text("zebras eat grass, and so on and on\n" * 20)
    model = ["--model", "embedding 40 8; conv 40 1x1 softmax", "--task", "next", "--tokens", "chars", "--context", 6]
    done = run(quern, "train", "--data", tmp_path / "a.txt", *model, "--epochs", 1, "-o", tmp_path / "m.st")
    assert done.returncode == 0, done.stderr
    again = ["train", "--data", tmp_path / "b.txt", "--init-from", tmp_path / "m.st", "--epochs", 1, "-o"]
    for k, more in enumerate(([], ["--tokens", "chars"], ["--context", 6, "--task", "next"])):
        done = run(quern, *again, tmp_path / f"{k}.st", *more)
        assert done.returncode == 0 and (tmp_path / f"{k}.st").read_bytes() == (tmp_path / "0.st").read_bytes(), done.stderr
    kept = [json.loads(json.loads(run(quern, "model", "show", tmp_path / name, "--json").stdout)["recipe"])
            for name in ("m.st", "0.st")]
    assert kept[0]["tokens"] == kept[1]["tokens"]
    done = run(quern, *again, tmp_path / "x.st", "--tokens", "bytes")
    assert done.returncode != 0 and "of the kind chars" in done.stderr, done.stderr


@pytest.mark.parametrize("first", [3, 65535])
def test_items_without_a_next_token_train_nothing(quern, tmp_path, first):
    x = np.full((20, 5), 65535, np.uint16)
    x[:, 0] = first
    np.save(tmp_path / "x.npy", x)
    done = learn(quern, tmp_path, "--epochs", 1)
    assert done.returncode != 0 and "no training item has a token that comes after" in done.stderr, done.stderr


def test_the_same_bytes_from_any_devices(quern, counting):
    files = []
    for more in (["--threads", 1], ["--threads", 3, "--isa", "scalar"]):
        assert learn(quern, counting, "--epochs", 2, "--grain", 7, *more).returncode == 0
        files.append((counting / "m.st").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("model, more, said", [
    ("embedding 300 8; conv 299 1x1 softmax", [], "comes the next one"),
    ("embedding 300 8; dense 300 softmax", [], "comes the next one"),
    ("embedding 300 8; globalpool; conv 300 1x1 softmax", [], "8 positions have a token that follows, and the last "
                                                              "layer gives 1"),
    ("embedding 300 8; conv 300 1x3 pad 0 softmax", [], "8 positions"),
    ("dense 300 softmax", [], "no labels"),
    ("embedding 200 8; conv 200 1x1 softmax", [], "is not the number of a token below 200"),
    ("embedding 300 8; conv 300 1x1 softmax", ["--class-weight", "balanced"], "a token that follows"),
    ("embedding 300 8; conv 200 1x1 tied softmax", [], "comes the next one"),
    ("embedding 300 8; conv 9 1x1; conv 300 1x1 tied softmax", [], "300 outputs of 9 channels"),
    ("embedding 300 8; conv 300 1x1 tied; conv 300 1x1 softmax", [], "before the last one"),
    ("embedding 300 8; conv 300 1x1 stride 2 tied softmax", [], "each position by itself"),
])
def test_what_no_next_token_can_have(quern, counting, model, more, said):
    done = learn(quern, counting, "--epochs", 1, *more, model=model)
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_a_table_is_tied(quern, counting):
    """The file has it once, from any number of threads; a frozen embedding keeps it."""
    tied = "embedding 300 24; conv 24 1x1 tanh; conv 300 1x1 tied softmax"
    tensors = []
    for model, more in (("a", ["--threads", 1]), ("b", ["--threads", 3, "--isa", "scalar"]),
                        ("frozen", ["--init-from", counting / "a.st", "--freeze", "0"])):
        done = learn(quern, counting, "--epochs", 2, "--grain", 7, "--ema", "0.9", *more, model=tied)
        assert done.returncode == 0, done.stderr
        (counting / "m.st").rename(counting / f"{model}.st")
        tensors.append(load_file(counting / f"{model}.st"))
    assert (counting / "a.st").read_bytes() == (counting / "b.st").read_bytes()
    a, _, frozen = tensors
    assert {name: array.shape for name, array in a.items()} == {"layer0.weight": (300, 24), "layer1.weight": (24, 24, 1, 1),
                                                                "layer1.bias": (24,)}
    assert np.array_equal(a["layer0.weight"], frozen["layer0.weight"])
    assert not np.array_equal(a["layer1.weight"], frozen["layer1.weight"])
    told = run(quern, "model", "show", counting / "a.st").stdout
    assert "conv 300 1x1 tied softmax" in told and f"{300 * 24 + 24 * 24 + 24:,}" in told, told


def test_what_decays(quern, counting):
    """The table of tokens that do not occur moves by decay alone."""
    found = {}
    for on in (None, "weights", "all"):
        more = ["--decay-on", on] if on else []
        done = learn(quern, counting, "--epochs", 1, "--weight-decay", "0.5", *more,
                     model="embedding 400 8; position learned; layernorm channels; conv 400 1x1 softmax")
        assert done.returncode == 0, done.stderr
        found[on] = load_file(counting / "m.st")["layer0.weight"][300:]
        recipe = json.loads(json.loads(run(quern, "model", "show", counting / "m.st", "--json").stdout)["recipe"])
        assert recipe.get("decay_on", "weights") == (on or "matrices")
    assert np.abs(found[None]).max() < np.abs(found["weights"]).max() and np.array_equal(found[None], found["all"])
    done = learn(quern, counting, "--epochs", 1, "--decay-on", "all")
    assert done.returncode != 0 and "nothing decays with the weight decay 0" in done.stderr, done.stderr


def test_integers_in_attention(quern, counting):
    """They are a choice; what a position gives depends on no later token, and neither on the items beside it."""
    model = "embedding 300 12; position learned; conv 36 1x1; attention 2 causal; conv 300 1x1 softmax"
    found = []
    for words in ([], ["--attention-arith", "float32"], ["--attention-arith", "integers"]):
        done = learn(quern, counting, "--epochs", 1, "--arith", "i7", *words, model=model)
        assert done.returncode == 0, done.stderr
        recipe = json.loads(json.loads(run(quern, "model", "show", counting / "m.st", "--json").stdout)["recipe"])
        found.append((recipe.get("attention_arith"), (counting / "m.st").read_bytes()))
    assert [name for name, _ in found] == [None, None, "integers"] and found[0] == found[1]
    done = run(quern, "replay", counting / "m.st", "--data", counting / "x.npy", "--tokens", "ids")
    assert done.returncode == 0 and "replay: identical" in done.stdout + done.stderr, done.stderr

    values, lines = np.load(counting / "x.npy"), []
    for part in (values, np.where(np.arange(9) < 6, values, 299), values[7:8]):
        np.save(counting / "part.npy", part.astype(np.uint16))
        done = run(quern, "predict", counting / "m.st", "--data", counting / "part.npy", "--tokens", "ids", "--logprobs")
        assert done.returncode == 0, done.stderr
        lines.append([line.split(",") for line in done.stdout.splitlines()[1:]])
    first = [line for line in lines[0] if line[0] == "7"]
    assert [line for line in lines[1] if line[0] == "7"][:5] == first[:5] and lines[0] != lines[1]
    assert [line[1:] for line in lines[2]] == [line[1:] for line in first] and len(first) > 5

    for words, said in ((["--arith", "f32"], "which is f32"), (["--arith", "i14"], "the network has no attention")):
        done = learn(quern, counting, "--epochs", 1, "--attention-arith", "integers", *words)
        assert done.returncode != 0 and said in done.stderr, done.stderr
    done = run(quern, "generate", counting / "m.st", "--prompt", "1", "--tokens", "3")
    assert done.returncode == 0 and len(done.stdout.split()) == 4, done.stderr
