"""Lines and rows as items of a model of next tokens (docs/exactness.md 25.68)."""

import csv
import gzip
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import python_package
import ranks

sys.path.insert(0, str(Path(__file__).parent / "oracle"))
import functions  # noqa: E402

DOUBLE = functions.formats((Path(__file__).parent.parent / "docs" / "exactness.md").read_text())[1]
TEXT = "the cat sat on the mat, the dog sat on the cat; ä dog is not a cat.\n" * 12
LINES = ["the dog, not", "", "a cat is on the ä dog", "t", " the mat", "the dog, not"]
CONTEXT = 30
FRAME = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}},
                                                  {"Sequence": {"id": "A", "type_id": 0}}],
         "pair": [], "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}}


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


@pytest.fixture(scope="module")
def texts(quern, tmp_path_factory):
    """A text, the same lines as files of lines and of rows, and a model of each tokenizer."""
    import subprocess

    folder = tmp_path_factory.mktemp("items")
    (folder / "a.txt").write_text(TEXT)
    (folder / "lines.txt").write_bytes("\r\n".join(LINES).encode())  # the last one has no end
    (folder / "rows.jsonl").write_text("".join(json.dumps({"id": i, "body": line or None}) + "\n" for i, line in enumerate(LINES)))
    subprocess.run([quern, "data", "tokenize", folder / "a.txt", "--train-bpe", "280", "-o", folder / "t.json"], check=True,
                   stdout=subprocess.DEVNULL)
    file = json.loads((folder / "t.json").read_text())
    (folder / "f.json").write_text(json.dumps({**file, "post_processor": FRAME}))
    for name, tokens in ("chars", "chars"), ("frame", f"bpe:{folder / 'f.json'}"):
        subprocess.run([quern, "train", "--data", folder / "a.txt", "--tokens", tokens, "--context", str(CONTEXT), "--task",
                        "next", "--model", "embedding 300 12; position learned; conv 300 1x1 softmax", "--epochs", "2",
                        "--optimizer", "adam", "--lr", "0.1", "--quiet", "-o", folder / f"{name}.st"], check=True)
    return folder


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def losses_of(model, numbers):
    """Log-softmax in binary64, from the parameters."""
    x = model.tensor("layer0.weight").astype(np.float64)[numbers[:-1]]
    x += model.tensor("layer1.weight").astype(np.float64)[: len(x)]
    z = x @ model.tensor("layer2.weight").T.astype(np.float64) + model.tensor("layer2.bias")
    z -= z.max(axis=1, keepdims=True)
    logs = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return logs[np.arange(len(x)), numbers[1:]]


@pytest.mark.parametrize("name", ["chars", "frame"])
def test_each_line_has_its_score(run_quern, q, texts, name):
    model = q.load(texts / f"{name}.st")
    tokenizer = q.Tokenizer("chars", str(texts / "a.txt")) if name == "chars" else q.Tokenizer(f"bpe:{texts / 't.json'}")
    say = [texts / f"{name}.st", "--data", texts / "lines.txt", "--item", "line"]
    rows = rows_of(run_quern("predict", *say).stdout)
    assert [row["item"] for row in rows] == [str(i) for i in range(len(LINES))]
    for line, row in zip(LINES, rows):
        numbers = tokenizer.encode(line).tolist()
        numbers = [0, *numbers] if name == "frame" and line else numbers
        count, logprob = max(len(numbers) - 1, 0), float(row["logprob"])
        wanted = losses_of(model, numbers).sum() if count else 0
        assert int(row["tokens"]) == count and math.isclose(logprob, wanted, abs_tol=1e-3), line
        assert row["perplexity"] == "" if count == 0 else float(row["perplexity"]) == DOUBLE.exp(np.array([-logprob / count]))[0]
    assert (rows[0]["logprob"], rows[0]["perplexity"]) == (rows[5]["logprob"], rows[5]["perplexity"])
    found = json.loads(run_quern("evaluate", *say, "--json").stdout)["evaluation"]
    assert found["tokens"] == sum(int(row["tokens"]) for row in rows)
    assert model.logprobs(texts / "lines.txt", item="line").tolist() == [float(row["logprob"]) for row in rows]
    each = model.logprobs(texts / "lines.txt", item="line", each=True)
    assert (~np.isnan(each)).sum(axis=1).tolist() == [int(row["tokens"]) for row in rows]


def test_rows_are_scored_as_lines(run_quern, quern, q, texts, tmp_path):
    alone = run_quern("predict", texts / "frame.st", "--data", texts / "lines.txt", "--item", "line").stdout
    column = ["--text", "body", "--item", "row"]
    done = run_quern("predict", texts / "frame.st", "--data", texts / "rows.jsonl", *column)
    assert done.stdout == alone and "1 of 6 rows have no text, and so no tokens" in done.stderr
    ranks.run(quern, 2, "predict", texts / "frame.st", "--data", texts / "rows.jsonl", *column, "-o", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == alone
    (tmp_path / "2.txt").write_text("".join(line + "\n" for line in LINES[3:]))
    (tmp_path / "1.txt").write_text("\n".join(LINES[:3]))
    parts = [tmp_path / "1.txt", tmp_path / "2.txt"]
    assert run_quern("predict", texts / "frame.st", *parts, "--item", "line").stdout == alone
    data = q.open(texts / "rows.jsonl", tokens=f"bpe:{texts / 'f.json'}", context=CONTEXT, text="body", item="row")
    assert (data.items, data.features) == (6, CONTEXT + 1) and (data.values[1] == 65535).all() and data.values[3, 0] == 0


@pytest.mark.parametrize("words, said", [
    (["--item", "word"], "--item is line or row"),
    (["--item", "row"], "name it with --text"),
    (["--item", "line", "--text", "body"], "set --item to row"),
    (["--item", "row", "--text", "body", "--drop", "id"], "leave them out"),
    (["--item", "line", "--context", 3], "the line has 12 tokens, and the model reads 4"),
])
def test_what_is_no_item(run_quern, texts, words, said):
    file = "lines.txt" if "--context" in words else "rows.jsonl"
    done = run_quern("predict", texts / "chars.st", "--data", texts / file, *words, status=None)
    assert done.returncode != 0 and said in done.stderr, done.stderr


def test_a_long_line_is_named(run_quern, texts, tmp_path):
    (tmp_path / "1.txt").write_text("a\na\n")
    (tmp_path / "2.txt").write_text("a\n" + "a" * (CONTEXT + 1) + "\n" + "a" * (CONTEXT + 2) + "\n")
    done = run_quern("predict", texts / "chars.st", tmp_path / "1.txt", tmp_path / "2.txt", "--item", "line", status=None)
    assert done.returncode != 0 and done.stdout == "", done.stdout
    assert "2.txt, line 3" in done.stderr and "has 32 tokens, and the model reads 31 at most" in done.stderr, done.stderr
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress(b""))
    done = run_quern("predict", texts / "chars.st", tmp_path / "e.txt.gz", "--item", "line", status=None)
    assert done.returncode != 0 and "no line" in done.stderr, done.stderr
