"""Low-rank adapters for a user: what trains, the file of them alone, and one model of both."""

import json
import subprocess

import numpy as np
import onnx_reader
import pytest
import python_package
import ranks
import recipes
from safetensors.numpy import load_file

GPT = ("embedding 300 16; position learned; residual { layernorm channels; conv 48 1x1; attention 2 causal; conv 16 1x1 };"
       " residual { layernorm channels; conv 64 1x1 gelu-tanh dropout 0.1; conv 16 1x1 }; layernorm channels; conv 300 1x1"
       " tied softmax")


def run(quern, *words):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)


def learn(quern, folder, *more, data="y.npy"):
    return run(quern, "train", "--data", folder / data, "--tokens", "ids", "--task", "next", "--optimizer", "adam", "--lr",
               "0.03", "--batch", 30, *more)


@pytest.fixture(scope="module")
def gpt(quern, tmp_path_factory):
    """A model that counts, and items that count by three."""
    folder = tmp_path_factory.mktemp("lora")
    for name, step in (("x", 1), ("y", 3)):
        np.save(folder / f"{name}.npy", ((np.arange(90)[:, None] * 37 + step * np.arange(9)) % 300).astype(np.uint16))
    assert learn(quern, folder, "--model", GPT, "--epochs", 8, "-o", folder / "base.st", data="x.npy").returncode == 0
    done = learn(quern, folder, "--init-from", folder / "base.st", "--lora", "4", "--epochs", 4, "-o", folder / "a.st")
    assert done.returncode == 0 and "14 of 17 layers do not train" in done.stderr, done.stderr
    return folder


def logits(quern, folder, *model):
    done = run(quern, "predict", *model, "--data", folder / "y.npy", "--tokens", "ids", "--logprobs", "-o", folder / "p.csv")
    assert done.returncode == 0, done.stderr
    return np.genfromtxt(folder / "p.csv", delimiter=",", names=True)["logprob"]


def test_an_export_has_the_numbers_of_both(quern, gpt):
    done = run(quern, "model", "export", gpt / "base.st", "--adapter", gpt / "a.st", "-o", gpt / "a.onnx")
    assert done.returncode == 0, done.stderr
    graph = onnx_reader.Graph((gpt / "a.onnx").read_bytes())
    known = {"input", *graph.constants, *(output for _, _, output, _ in graph.nodes)}
    assert not {name for _, inputs, _, _ in graph.nodes for name in inputs if name} - known
    base, a = load_file(gpt / "base.st"), load_file(gpt / "a.st")
    for theirs, ours in ((base["layer3.weight"], "layer3.weight"), (a["layer6.weight"], "layer6.weight")):
        assert np.array_equal(graph.constants[ours].reshape(theirs.shape), theirs)


def test_adapters_are_saved_alone(quern, gpt):
    """4 x 16 and 48 x 4 numbers. One model of both predicts alike, but for roundings."""
    a = load_file(gpt / "a.st")
    assert {name: array.shape for name, array in a.items()} == {
        "layer4.weight": (4, 16, 1, 1), "layer6.weight": (48, 4, 1, 1)}
    assert run(quern, "model", "merge", gpt / "base.st", gpt / "a.st", "-o", gpt / "m.st").returncode == 0
    base, merged = load_file(gpt / "base.st"), load_file(gpt / "m.st")
    want = base["layer3.weight"].reshape(48, 16).copy()
    for j in range(4):  # 25.88, exact in binary64 but for the last rounding of each step
        want = (want.astype(float) + (2 * a["layer6.weight"][:, j, 0, 0:1]).astype(float)
                * a["layer4.weight"][j].reshape(1, 16).astype(float)).astype(np.float32)
    assert np.array_equal(merged.pop("layer3.weight").reshape(48, 16), want)
    assert all(np.array_equal(array, base[name]) for name, array in merged.items()) and len(merged) == len(base) - 1
    both = logits(quern, gpt, gpt / "base.st", "--adapter", gpt / "a.st")
    one, before = logits(quern, gpt, gpt / "m.st"), logits(quern, gpt, gpt / "base.st")
    assert abs(both - one).max() < 1e-4 and abs(both - before).max() > 1
    told = [run(quern, "generate", *model, "--prompt", "3 6 9", "--tokens", 5).stdout
            for model in ((gpt / "base.st", "--adapter", gpt / "a.st"), (gpt / "m.st",))]
    assert told[0] == told[1] and told[0].strip()
    pair = [gpt / "base.st", "--adapter", gpt / "a.st"]
    run(quern, "generate", *pair, "--prompt", "3 6 9", "--tokens", 5, "-o", gpt / "told.json")
    done = run(quern, "replay", gpt / "told.json", "--model", *pair)
    assert done.stdout == f"replay: identical, {gpt / 'told.json'}\n", done.stderr


def test_the_same_bytes_again(quern, gpt, tmp_path):
    """A replay, two ranks, outputs that are computed again, and a run that was continued."""
    lora = ["--init-from", gpt / "base.st", "--lora", "4 alpha 8 on attention"]
    words = [quern, "train", "--data", gpt / "y.npy", "--tokens", "ids", "--task", "next", "--optimizer", "adam", "--lr", "0.03",
             "--batch", 30, *lora]
    want = recipes.sha256(gpt / "a.st")
    done = run(quern, "replay", gpt / "a.st", "--data", gpt / "y.npy", "--tokens", "ids", "--init-from", gpt / "base.st")
    assert "identical" in done.stdout, done.stderr
    ranks.run(quern, 2, *words[1:], "--grain", 128, "--epochs", 4, "--threads", 1, "--quiet", "-o", tmp_path / "r.st")
    assert recipes.sha256(tmp_path / "r.st") == want
    assert learn(quern, gpt, *lora, "--epochs", 2, "--checkpoint", tmp_path / "c", "-o", tmp_path / "h.st").returncode == 0
    done = learn(quern, gpt, *lora, "--epochs", 4, "--checkpoint", tmp_path / "c", "--resume", "--recompute", "-o",
                 tmp_path / "h.st")
    assert done.returncode == 0 and recipes.sha256(tmp_path / "h.st") == want, done.stderr


PYTHON = """
import sys
import quern
base, adapter, items, made = sys.argv[1:]
data = quern.open(items, tokens="ids")
model = quern.train(data, task="next", init_from=base, lora=4, optimizer="adam", lr=0.03, batch=30, epochs=4, output=made)
again = quern.replay(made, data, init_from=base)
both = quern.load(base, adapter=adapter)
one = both.merge()
try:
    one.merge()
except quern.MismatchError as error:
    refused = str(error)
one.save(made + ".merged")
print(model.digest, again.digest, both.digest, len(one.layers), refused, both.predict(data).ravel().tolist(), sep="\\n")
"""


def test_adapters_in_python(quern, gpt, tmp_path):
    """The bytes of the commands: of a training, its replay, a merged model and predictions."""
    logits(quern, gpt, gpt / "base.st", "--adapter", gpt / "a.st")
    want = np.genfromtxt(gpt / "p.csv", delimiter=",", names=True)["prediction"].astype(int).reshape(90, 8)
    told = python_package.python(PYTHON, gpt / "base.st", gpt / "a.st", gpt / "y.npy", tmp_path / "p.st").splitlines()
    assert told[0] == told[1] == told[2] and "no adapters" in told[4]
    assert (tmp_path / "p.st").read_bytes() == (gpt / "a.st").read_bytes()
    assert run(quern, "model", "merge", gpt / "base.st", gpt / "a.st", "-o", tmp_path / "m.st").returncode == 0
    assert (tmp_path / "p.st.merged").read_bytes() == (tmp_path / "m.st").read_bytes()
    assert told[3] == "13" and json.loads(told[5]) == want[:, -1].tolist()


@pytest.mark.parametrize("lora, said", [
    ("0", "rank"), ("4 alpha", "invalid alpha"), ("4 on", "invalid layers"), ("4 on 1", "layer 1 cannot have an adapter"),
    ("4 on 99", "layer 99"), ("4 on 99999999999999999999999", "layer 18446744073709551615"), ("32769", "above 32768"), ("4 on 3..x", "does not name layers"), ("4 of all", "unknown word"), ("4 on 11", "layer 11")])
def test_what_is_no_adapter_is_refused(quern, gpt, tmp_path, lora, said):
    done = learn(quern, gpt, "--init-from", gpt / "base.st", "--lora", lora, "-o", tmp_path / "n.st")
    assert done.returncode != 0 and said in done.stderr and "lora" in done.stderr, done.stderr


def test_a_file_of_adapters_needs_its_model(quern, gpt, tmp_path):
    data = ["--data", gpt / "y.npy", "--tokens", "ids"]
    for words, said in (
            ([gpt / "a.st", *data], "adapters alone"), ([gpt / "a.st", "--adapter", gpt / "a.st", *data], "adapters alone"),
            ([gpt / "base.st", "--adapter", gpt / "base.st", *data], "leave --adapter out")):
        done = run(quern, "evaluate", *words)
        assert done.returncode != 0 and said in done.stderr, done.stderr
    assert learn(quern, gpt, "--model", GPT, "--epochs", 1, "-o", tmp_path / "other.st").returncode == 0
    done = run(quern, "evaluate", tmp_path / "other.st", "--adapter", gpt / "a.st", *data)
    assert done.returncode != 0 and "adapters are of another model" in done.stderr
    for more, said in ((["--lora", 4], "name the model with --init-from"),
                       (["--init-from", gpt / "base.st", "--lora", 4, "--freeze", "0"], "leave out --freeze")):
        done = learn(quern, gpt, *(more if "--init-from" in more else [*more, "--model", GPT]), "-o", tmp_path / "n.st")
        assert done.returncode != 0 and said in done.stderr, done.stderr


def test_a_new_last_layer_trains_beside_adapters(quern, tmp_path):
    """All layers but the last have one, also the first of an activation; the new layer is in the file."""
    x = np.random.default_rng(4).normal(size=(120, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    for name, labels in (("y", x[:, 0] > 0), ("z", (x[:, 1] > 0) * 1 + (x[:, 2] > 0))):
        np.save(tmp_path / f"{name}.npy", labels.astype(np.uint8))
    words = ["train", "--data", tmp_path / "x.npy", "--epochs", 3, "--batch", 40, "--lr", "0.1"]
    first = run(quern, *words, "--labels", tmp_path / "y.npy", "--model", "dense 8 tanh; dense 5 relu; dense 2 softmax", "-o",
                tmp_path / "b.st")
    done = run(quern, *words, "--labels", tmp_path / "z.npy", "--init-from", tmp_path / "b.st", "--new-last", "--lora",
               "2 alpha 2 on all", "-o", tmp_path / "a.st")
    assert first.returncode == 0 and done.returncode == 0, done.stderr
    got = {name: array.shape for name, array in load_file(tmp_path / "a.st").items() if name.startswith("layer")}
    assert got == {"layer1.weight": (2, 6), "layer2.weight": (8, 2), "layer5.weight": (2, 8), "layer6.weight": (5, 2),
                   "layer8.weight": (3, 5), "layer8.bias": (3,)}
    assert run(quern, "model", "merge", tmp_path / "b.st", tmp_path / "a.st", "-o", tmp_path / "m.st").returncode == 0
    told = [run(quern, "evaluate", *model, "--data", tmp_path / "x.npy", "--labels", tmp_path / "z.npy").stdout.splitlines()[0]
            for model in ((tmp_path / "b.st", "--adapter", tmp_path / "a.st"), (tmp_path / "m.st",))]
    assert told[0] == told[1] and "accuracy" in told[0]


def test_a_model_with_a_block_like_an_adapter_needs_another_rank(quern, tmp_path):
    """Adapters are known by their layers."""
    x = np.random.default_rng(4).normal(size=(60, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", (x[:, 0] > 0).astype(np.uint8))
    words = ["train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--epochs", 1]
    model = "residual { dense 6 | dense 2 nobias; dense 6 nobias } relu; dense 4 relu; dense 2 softmax"
    assert run(quern, *words, "--model", model, "-o", tmp_path / "b.st").returncode == 0
    told = [run(quern, *words, "--init-from", tmp_path / "b.st", "--lora", f"{rank} on all", "-o", tmp_path / "a.st")
            for rank in (2, 3)]
    assert told[0].returncode != 0 and "a block that looks like an adapter of rank 2" in told[0].stderr, told[0].stderr
    assert told[1].returncode == 0, told[1].stderr
