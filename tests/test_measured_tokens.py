"""Models of next tokens are measured and applied (docs/exactness.md 25.65 and 25.66)."""

import csv
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import devices
import python_package
import ranks

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
import evaluation as oracle  # noqa: E402
import functions  # noqa: E402

DOUBLE = functions.formats((Path(__file__).parent.parent / "docs" / "exactness.md").read_text())[1]

TEXT = "the cat sat on the mat, the dog sat on the cat; ä dog is not a cat.\n" * 12
OTHER = "the dog sat on the mat.\na cat is not on the ä dog; the dog sat, the cat not\n" * 3
MODEL = "embedding 300 12; conv 300 1x1 softmax"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("next")
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.txt").write_text(OTHER)
    return folder


@pytest.fixture(scope="module")
def models(quern, texts):
    """A model of each tokenizer."""
    import subprocess

    made = {}
    for kind in ("chars", "bytes", "bpe:280", "words"):
        made[kind] = texts / f"{kind[:3]}.st"
        subprocess.run([quern, "train", "--data", texts / "a.txt", "--tokens", kind, "--context", "9", "--task", "next",
                        "--model", MODEL, "--epochs", "4", "--optimizer", "adam", "--lr", "0.1", "--quiet", "-o",
                        made[kind]], check=True, stdout=subprocess.DEVNULL)
    return made


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("kind", ["chars", "bytes", "bpe:280", "words"])
def test_every_number_follows_from_the_losses_of_tokens(run_quern, texts, models, kind):
    say = [models[kind], "--data", texts / "b.txt"]
    found = json.loads(run_quern("evaluate", *say, "--json").stdout)["evaluation"]
    each = rows_of(run_quern("predict", *say, "--logprobs").stdout)
    items = rows_of(run_quern("predict", *say).stdout)
    losses = [-np.float32(row["logprob"]) for row in each]
    right = [row["token"] == row["prediction"] for row in each]
    lengths = None if kind == "words" else [len(row["text"].encode()) for row in each]
    if kind in ("bytes", "bpe:280"):  # a part of a character is shown as U+FFFD
        lengths = [1 if "\ufffd" in row["text"] else n for row, n in zip(each, lengths)]
    wanted = oracle.next_tokens(losses, sum(right), lengths)
    for key, number in wanted.items():
        assert found[key] == number, key
    assert found["perplexity"] == DOUBLE.exp(np.array([found["loss"]]))[0]
    assert (found["bits_per_byte"] is None) == (kind == "words") and found["items"] == len(items)
    for i, row in enumerate(items):
        own = [k for k, one in enumerate(each) if one["item"] == str(i)]
        assert float(row["logprob"]) == -float(sum(oracle.Fraction(float(losses[k])) for k in own))
        assert int(row["tokens"]) == len(own) and int(row["correct"]) == sum(right[k] for k in own)
        assert (row["label"], row["prediction"]) == (each[own[-1]]["token"], each[own[-1]]["prediction"])


def test_they_are_those_of_the_weights(q, texts, models):
    """Log-softmax in binary64, from the parameters."""
    model = q.load(models["chars"])
    data = q.open(texts / "b.txt", tokens="chars", context=9, task="next", expected_tokens=model.recipe["tokens"],
                  expected_tokenizer=q.Tokenizer("chars", str(texts / "a.txt")).json)
    x = data.values.astype(np.int64)
    z = model.tensor("layer0.weight").astype(np.float64)[x[:, :-1]] @ model.tensor("layer1.weight").T.astype(np.float64)
    z += model.tensor("layer1.bias")
    z -= z.max(axis=2, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=2, keepdims=True))
    wanted = np.take_along_axis(logs, x[:, 1:, None], 2)[..., 0]
    each = model.logprobs(data, each=True)
    assert each.dtype == np.float32 and np.allclose(each, wanted, atol=1e-4)
    assert np.allclose(model.logprobs(data), wanted.sum(axis=1), atol=1e-3)
    assert (model.predict(texts / "b.txt") == logs[:, -1].argmax(axis=1)).all()
    found = model.evaluate(texts / "b.txt")
    assert abs(found["loss"] + wanted.mean()) < 1e-5 and math.isclose(found["perplexity"], math.exp(found["loss"]))
    with pytest.raises(q.UnsupportedError, match="answer to an item"):
        model.predict(data, outputs=True)


@pytest.mark.parametrize("device", ["scalar", *devices.KINDS])
def test_any_device_gives_the_same(run_quern, texts, models, device):
    more, env = ["--threads", 1, "--isa", "scalar"], None
    if device in devices.KINDS:
        (name,), env = devices.KINDS[device]()
        more = ["--devices", name]
    say = [models["chars"], "--data", texts / "b.txt"]
    for rest in (["predict", *say, "--logprobs"], ["evaluate", *say, "--json"]):
        assert run_quern(*rest, *more, env=env).stdout == run_quern(*rest).stdout


def test_ranks_give_the_same(run_quern, quern, texts, models, tmp_path):
    alone = run_quern("predict", models["chars"], "--data", texts / "b.txt", "--logprobs").stdout
    ranks.run(quern, 2, "predict", models["chars"], "--data", texts / "b.txt", "--logprobs", "-o", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == alone


def test_items_that_end_early(run_quern, tmp_path):
    """65535 is neither a target nor counted."""
    x = (np.arange(40)[:, None] * 3 + np.arange(6)).astype(np.uint16) % 50
    x[::4, 3:] = 65535
    x[1, 1:] = 65535
    np.save(tmp_path / "x.npy", x)
    run_quern("train", "--data", tmp_path / "x.npy", "--tokens", "ids", "--task", "next", "--model", MODEL, "--epochs", 1,
              "--quiet", "-o", tmp_path / "m.st")
    found = json.loads(run_quern("evaluate", tmp_path / "m.st", "--data", tmp_path / "x.npy", "--json").stdout)["evaluation"]
    rows = rows_of(run_quern("predict", tmp_path / "m.st", "--data", tmp_path / "x.npy").stdout)
    counts = (x[:, 1:] != 65535).sum(axis=1)
    assert [int(row["tokens"]) for row in rows] == counts.tolist() and found["tokens"] == counts.sum()
    assert found["items"] == 39 and found["bits_per_byte"] is None and rows[0]["label"] == "" == rows[1]["label"]
    assert math.isclose(sum(float(row["logprob"]) for row in rows), -found["loss"] * found["tokens"], rel_tol=1e-12)


@pytest.mark.parametrize("words, said", [
    (["--outputs"], "--logprobs"), (["--top", 3], "--top is for models"), (["--flips"], "one answer to an image"),
])
def test_what_such_a_model_has_not(run_quern, texts, models, words, said):
    done = run_quern("predict", models["chars"], "--data", texts / "b.txt", *words, status=None)
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_the_training_tells_the_perplexity(run_quern, texts, tmp_path):
    done = run_quern("train", "--data", texts / "a.txt", "--tokens", "chars", "--context", 9, "--task", "next", "--model",
                     MODEL, "--epochs", 2, "--valid", "0.2", "--json", "--run-dir", tmp_path / "r", "--report",
                     tmp_path / "r.html", "-o", tmp_path / "m.st")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    epochs = [e for e in events if e["event"] == "epoch"]
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    lines = rows_of((tmp_path / "r" / "metrics.csv").read_text())
    for e, line in zip(epochs, lines):
        assert math.isclose(e["valid_perplexity"], math.exp(e["valid_loss"]))
        assert math.isclose(float(line["train_perplexity"]), math.exp(float(line["train_loss"])), rel_tol=1e-6)
    assert math.isclose(record["valid"]["perplexity"], math.exp(record["valid"]["loss"]), rel_tol=1e-6)
    assert math.isclose(events[-1]["perplexity"], math.exp(events[-1]["loss"]))
    assert (tmp_path / "r.html").read_text().count("Perplexity") >= 1


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern
