"""A column of texts whose tokens become the items of a table (docs/exactness.md 25.46)."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import data_vectors
import python_package

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
import data as oracle  # noqa: E402

GOOD, BAD = "a warm and funny film", "a dull and empty film"
CONTEXT = 8


def rows(count=40):
    """Reviews of 6 to 11 words, a length and a class."""
    return [[f"{(GOOD, BAD)[i % 2]} " + " ".join(["again"] * (i % 5)) + f"no{i}", 80 + i, "ny"[i % 2]] for i in range(count)]


def write(path, lines, head=("review", "minutes", "kind")):
    with open(path, "w", newline="") as out:
        csv.writer(out).writerows([head, *lines])
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "t.csv", rows())


@pytest.fixture
def info(run_quern):
    return lambda *words: json.loads(run_quern("data", "info", *words, "--json").stdout)


def words_of(text):
    return text.split(" ")


def expected(lines, context=CONTEXT):
    """The tokens by the definition, for texts of words and single spaces."""
    texts = [words_of(line[0]) for line in lines]
    count = {}
    for word in (word for text in texts for word in text):
        count[word] = count.get(word, 0) + 1
    order = {word: k for k, word in enumerate(sorted(count, key=lambda word: (-count[word], word.encode())))}
    tokens = np.full((len(texts), context), 65535, "<u2")
    for i, text in enumerate(texts):
        numbers = [order[word] for word in text][:context]
        tokens[i, :len(numbers)] = numbers
    return tokens


def test_a_column_of_texts_becomes_tokens(run_quern, table, info):
    """The other column is left out; what is cut is counted; all is in the digest."""
    words = ["--label", "kind", "--tokens", "words", "--context", str(CONTEXT)]
    tokens, labels = expected(rows()), np.array([i % 2 for i in range(40)], "<i4")
    found = info(table, *words)
    assert found["digest"] == data_vectors.digest_of(3, *tokens.shape, tokens.tobytes(), labels.tobytes())
    assert found["tokens"].startswith("words ") and found["features"] == CONTEXT
    told = run_quern("data", "info", table, *words).stderr
    assert 'tokens are made of column "review" alone; left out: column "minutes"' in told
    longer = [i for i, line in enumerate(rows()) if len(words_of(line[0])) > CONTEXT]
    longest = max(len(words_of(line[0])) for line in rows())
    assert f"{len(longer)} of 40 texts are cut to 8 tokens: the longest has {longest}" in told
    assert info(table, *words[:4], "--context", "16")["digest"] != found["digest"]


def test_formats_agree(run_quern, table, info, tmp_path):
    words = ["--label", "kind", "--tokens", "words", "--context", str(CONTEXT)]
    for name in "t.parquet", "t.jsonl", "t.arrow":
        run_quern("data", "convert", table, "--label", "kind", "-o", tmp_path / name)
        assert info(tmp_path / name, *words)["digest"] == info(table, *words)["digest"]


def train(run_quern, path, *words, model="embedding 80 8; globalpool; dense 2 softmax"):
    return run_quern("train", "--data", path, "--label", "kind", "--context", str(CONTEXT), "--model", model,
                     "--epochs", "2", *words, "-o", path.parent / "m.st")


def test_a_model_has_the_tokenizer(run_quern, table, tmp_path):
    """New files need their texts alone; one that is longer is cut, a missing one has no tokens."""
    train(run_quern, table, "--tokens", "words:60", "--valid", "0.25")
    model = tmp_path / "m.st"
    run_quern("replay", model, "--data", table)
    assert "accuracy" in run_quern("evaluate", model, "--data", table).stdout
    lines = [[f"{GOOD} " + " ".join(["again"] * 30), 1], ["", 2], [BAD, 3]]
    new = write(tmp_path / "new.csv", lines, ("review", "minutes"))
    done = run_quern("predict", model, "--data", new)
    assert len(done.stdout.split()) == 4
    assert "1 of 3 texts are cut to 8 tokens" in done.stderr and "1 of 3 items have no text" in done.stderr
    empty = tmp_path / "empty.jsonl"
    for keys, words in (("review",), ()), (("review", "note"), ("--text", "review")):
        empty.write_text(json.dumps(dict.fromkeys(keys, "")) + "\n")
        done = run_quern("predict", model, "--data", empty, *words)
        assert len(done.stdout.split()) == 2 and "1 of 1 items have no text" in done.stderr
    lines = write(tmp_path / "lines.csv", [["", k] for k in "abc"], ("review", "kind"))
    done = run_quern("predict", model, "--data", lines, "--unlabelled", "--text", "review")
    assert "3 of 3 items have no text" in done.stderr
    other = write(tmp_path / "other.csv", rows(), ("text", "minutes", "kind"))
    train(run_quern, table, "--tokens", "words:60", "--valid", other)


INNER = "embedding 80 8; conv 24 1x1; position learned; attention 2; layernorm channels; pool mean; dense 2 softmax"


def test_outputs_of_a_layer(run_quern, table, tmp_path):
    """Those before the last layer give the probabilities, and a pool is that of the network."""
    train(run_quern, table, "--tokens", "words:60", model=INNER)
    model, file = tmp_path / "m.st", tmp_path / "e.npy"

    def values(*words):
        run_quern("predict", model, "--data", table, "-o", file, "--quiet", *words)
        return np.load(file)

    pooled = values("--layer", "5")
    assert pooled.shape == (40, 8)
    assert np.array_equal(pooled.view(np.uint32), values("--layer", "body", "--pool", "mean").view(np.uint32))
    each = values("--layer", "4").reshape(40, CONTEXT, 8)
    lengths = [min(CONTEXT, len(words_of(line[0]))) for line in rows()]
    for item, length, mean in zip(each, lengths, pooled):
        assert np.allclose(item[:length].mean(0), mean, atol=1e-6)
    assert np.array_equal(values("--layer", "4", "--pool", "last"), [item[n - 1] for item, n in zip(each, lengths)])
    tensors = safetensors.numpy.load_file(model)
    chances = np.exp(pooled @ tensors["layer6.weight"].T + tensors["layer6.bias"])
    run_quern("predict", model, "--data", table, "--outputs", "-o", tmp_path / "p.csv", "--quiet")
    given = np.array([line.split(",")[-2:] for line in (tmp_path / "p.csv").read_text().split()[1:]], float)
    assert np.allclose(given, chances / chances.sum(1, keepdims=True), atol=1e-6)
    assert np.array_equal(values("--layer", "-2"), pooled)
    labels = tmp_path / "y.npy"
    values("--layer", "5", "--output-labels", labels)
    run_quern("predict", model, "--data", table, "-o", tmp_path / "e.csv", "--quiet", "--layer", "5")
    kinds, *numbers = zip(*[line.split(",") for line in (tmp_path / "e.csv").read_text().split()[1:]])
    assert list(kinds) == [line[-1] for line in rows()] and np.array_equal(np.array(numbers, np.float32).T, pooled)
    assert list(np.load(labels)) == list(kinds)
    for words, what in ((["--layer", "7", "-o", file], "layers 0 to 6"), (["--layer", "5"], "needs a file"),
                        (["--layer", "-8", "-o", file], "layers 0 to 6"), (["--layer", "5x", "-o", file], "\"5x\" does not name a layer"),
                        (["--layer", "5", "-o", tmp_path / "e.idx"], "needs a file"), (["--output-labels", labels], "--layer"),
                        (["--layer", "5", "-o", tmp_path / "e.csv", "--output-labels", labels], "the file has the labels"),
                        (["--pool", "mean", "-o", file], "--layer"),
                        (["--layer", "5", "--pool", "sum", "-o", file], "cannot be")):
        assert what in run_quern("predict", model, "--data", table, *words, status=2).stderr


def test_quantities(run_quern, tmp_path):
    path = write(tmp_path / "q.csv", [[text, kind == "y", minutes + 0.5] for text, minutes, kind in rows()])
    done = train(run_quern, path, "--tokens", "chars", model="embedding 80 8; globalpool; dense 1")
    assert "R2" in done.stdout or "error" in done.stdout


@pytest.mark.parametrize("words, lines, what", [
    (["--context", "8", "--tokens", "ids"], None, "such as words:20000"),
    (["--tokens", "words"], None, "--context 16"),
    (["--tokens", "words", "--context", "8", "--text", "review,minutes"], None, "there are several"),
    (["--tokens", "words", "--context", "8", "--drop", "review"], None, "no column of texts"),
    (["--tokens", "words:1", "--context", "8"], None, "there may be 2"),
    (["--tokens", "words", "--context", "8"], [[f"{GOOD} {i}", f"{BAD} {i}", "ny"[i % 2]] for i in range(30)],
     'column "review", column "minutes"')])
def test_what_cannot_be(run_quern, table, tmp_path, words, lines, what):
    path = write(tmp_path / "o.csv", lines) if lines else table
    assert what in run_quern("data", "info", path, "--label", "kind", *words, status=2 if "words:1" in words else 1).stderr


def test_from_python(table):
    """Frames, Series and arrays of texts are the table of the file, and a model takes them, too."""
    pytest.importorskip("pandas")
    said = python_package.python("""
import sys
import numpy as np
import pandas as pd
import quern
how = {"tokens": "words", "context": 8}
frame = pd.read_csv(sys.argv[1])
file = quern.open(sys.argv[1], label="kind", **how)
assert quern.Data(frame, label="kind", **how).digest == file.digest
for texts in frame[["review", "minutes"]], frame["review"], frame["review"].to_numpy(object):
    assert quern.Data(texts, frame["kind"], **how).digest == file.digest
model = quern.train(frame, label="kind", model="embedding 80 8; globalpool; dense 2 softmax", epochs=20, **how)
wanted = list(model.predict(sys.argv[1]))
for texts in frame, frame["review"], frame["review"].to_numpy(object):
    assert list(model.predict(texts)) == wanted
assert model.evaluate(frame)["accuracy"] == 1
assert model.features(frame, layer=0).shape == (len(frame), 8, 8)
assert (model.features(frame, layer=-2) == model.features(frame, layer=1)).all()
assert model.features(frame, layer=0, pool="mean").shape == (len(frame), 8)
for texts in frame["review"].to_numpy(object), frame[["review"]].to_numpy(object):
    try:
        quern.Classifier().fit(texts, frame["kind"])
        assert False
    except quern.InputError as wrong:
        assert "the array holds texts, such as 'a warm" in str(wrong) and "DataFrame" in str(wrong), wrong
print("done")
""", table)
    assert said == "done\n"


def test_items_have_what_stands_around_a_text(run_quern, info, tmp_path):
    """[CLS] and [SEP]; the end of a long text makes place for them, and a missing one has none."""
    content = json.loads((Path(__file__).parent / "fuzz" / "corpus" / "tokenizer" / "uncased.json").read_text())
    content["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    (tmp_path / "t.json").write_text(json.dumps(content))
    number, words = content["model"]["vocab"], ["!", "a", "b", "b !", "a b a b a b a"]
    lines = [[word, "ny"[i % 2]] for i, word in enumerate([*words, ""])]
    path = write(tmp_path / "t.csv", lines, ("text", "kind"))
    given = ["--label", "kind", "--text", "text", "--tokens", f"wordpiece:{tmp_path / 't.json'}", "--context"]
    tokens = np.full((6, 6), 65535, "<u2")
    for i, text in enumerate(words):
        row = [2, *(number[word] for word in text.split())][:5] + [3]
        tokens[i, :len(row)] = row
    labels = np.array([0, 1] * 3, "<i4")
    assert info(path, *given, "6")["digest"] == data_vectors.digest_of(3, 6, 6, tokens.tobytes(), labels.tobytes())
    assert "1 of 6 texts are cut to 6 tokens: the longest has 9" in run_quern("data", "info", path, *given, "6").stderr
    assert "has no place for its text" in run_quern("data", "info", path, *given, "2", status=1).stderr
