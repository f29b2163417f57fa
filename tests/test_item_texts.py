"""Lines and rows as items of a model of next tokens (docs/exactness.md 25.68, 25.69)."""

import csv
import gzip
import io
import json
import math
import re
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
])
def test_what_is_no_item(run_quern, texts, words, said):
    done = run_quern("predict", texts / "chars.st", "--data", texts / "rows.jsonl", *words, status=None)
    assert done.returncode != 0 and said in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["chars", "frame"])
def test_long_lines_are_read_in_windows(run_quern, quern, q, texts, tmp_path, name):
    """25.69, by strides in NumPy: lines of T + 1 tokens, of one more, of some windows."""
    half, model = CONTEXT // 2, q.load(texts / f"{name}.st")
    tokenizer = q.Tokenizer("chars", str(texts / "a.txt")) if name == "chars" else q.Tokenizer(f"bpe:{texts / 't.json'}")
    lines = ["a" * (CONTEXT + 1), "the cat", "a" * (CONTEXT + 2), "", TEXT.replace("\n", " "), TEXT[:CONTEXT + 1 + half].strip()]
    (tmp_path / "1.txt").write_text("".join(line + "\n" for line in lines[:3]))
    (tmp_path / "2.txt").write_text("\n".join(lines[3:]))
    say = [texts / f"{name}.st", tmp_path / "1.txt", tmp_path / "2.txt", "--item", "line"]
    done = run_quern("predict", *say)
    rows, each = rows_of(done.stdout), rows_of(run_quern("predict", *say, "--logprobs").stdout)
    assert re.search(r"[2-4] of 6 lines have more than 31 tokens: .* each begins 15 tokens after", done.stderr), done.stderr
    assert [row["item"] for row in rows] == list("012345") and "5 predictions" in done.stderr
    for i, line in enumerate(lines):
        numbers = tokenizer.encode(line).tolist()
        numbers = [0, *numbers] if name == "frame" and line else numbers
        wanted = list(losses_of(model, numbers[:CONTEXT + 1])) if len(numbers) > 1 else []
        for begin in range(half, max(len(numbers) - CONTEXT - 1 + half, 0), half):
            wanted += list(losses_of(model, numbers[begin:begin + CONTEXT + 1])[CONTEXT - half:])
        own = [row for row in each if row["item"] == str(i)]
        assert [int(row["token"]) for row in own] == numbers[1:] and len(wanted) == len(own)
        assert [int(row["position"]) for row in own] == list(range(1, len(numbers)))
        assert np.allclose([float(row["logprob"]) for row in own], wanted, atol=1e-4)
        assert int(rows[i]["tokens"]) == len(own) and math.isclose(float(rows[i]["logprob"]), sum(wanted), abs_tol=1e-2)
        assert rows[i]["logprob"] in ("0", "-0") if not own else float(rows[i]["logprob"]) == math.fsum(float(np.float32(row["logprob"])) for row in own)
    found = json.loads(run_quern("evaluate", *say, "--json").stdout)["evaluation"]
    assert found["tokens"] == len(each)
    assert math.isclose(found["bits_per_byte"] * (sum(len(line.encode()) for line in lines) - 5 * (name == "chars")),
                        -sum(float(row["logprob"]) for row in each) / math.log(2), rel_tol=1e-6)
    ranks.run(quern, 2, "predict", *say, "--data-from-rank0", "-o", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == done.stdout
    if name == "chars":
        files = [tmp_path / "1.txt", tmp_path / "2.txt"]
        assert model.logprobs(files, item="line").tolist() == [float(row["logprob"]) for row in rows]
        table = model.logprobs(files, item="line", each=True)
        assert table[~np.isnan(table)].tolist() == [np.float32(row["logprob"]) for row in each]
        assert model.predict(files, item="line").tolist() == [int(row["prediction"] or -1) for row in rows]
        data = q.open(files, tokens="chars", context=CONTEXT, item="line")
        with pytest.raises(q.QuernError, match="the training data has texts with more than 31 tokens"):
            q.train(data, task="next", model="embedding 30 4; conv 30 1x1 softmax")


def test_a_text_without_lines_is_refused(run_quern, texts, tmp_path):
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress(b""))
    done = run_quern("predict", texts / "chars.st", tmp_path / "e.txt.gz", "--item", "line", status=None)
    assert done.returncode != 0 and "no line" in done.stderr, done.stderr
