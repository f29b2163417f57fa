"""Texts in parts (--data-parts): a vocabulary that all ranks learn, one row of tokens whose items cross files, and
texts with labels. Models, predictions and measures are those of one process with all files."""

import json
import random

import pytest

import ranks
import recipes

WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu é ñandú".split()


def words_of(draw, count, begin=0):
    return " ".join(draw.choice(WORDS[begin:begin + 8]) + draw.choice(["", "", "", ".", "\n"]) for _ in range(count))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Files of unequal sizes, one of which is shorter than an item, and tables with texts."""
    folder = tmp_path_factory.mktemp("texts")
    draw = random.Random(3)
    for k, count in enumerate([1500, 1, 600]):
        (folder / f"t{k}.txt").write_text(words_of(draw, count))
    for k, rows in enumerate([90, 12, 150]):
        begins = [draw.randrange(3) for _ in range(rows)]
        lines = [f'"{words_of(draw, draw.randrange(1, 20), begin)}",c{begin}' for begin in begins]
        (folder / f"r{k}.csv").write_text("\n".join(["text,y", *lines]) + "\n")
    return folder


def named(option, letters):
    return [word for k in range(3) for word in (option, letters.format(k))]


FAST = ["--batch", "16", "--grain", "2", "--threads", "1", "--valid", "0.1"]
NEXT = ["--task", "next", "--context", "16", "--model", "embedding 300 8; conv 300 1x1 softmax", *FAST, "--epochs"]


@pytest.fixture(scope="module")
def gpt(quern, run_quern, texts):
    run_quern("train", *named("--data", "t{}.txt"), "--tokens", "bpe:300", *NEXT, "1", "--quiet", "-o", "gpt", cwd=texts)
    return texts / "gpt"


def test_one_row_of_tokens(quern, texts, gpt):
    """Items go from file to file, and the vocabulary is that of all files."""
    done = ranks.run(quern, 3, "train", *named("--data-parts", "t{}.txt"), "--tokens", "bpe:300", *NEXT, "1", "-o", "m",
                     cwd=texts)
    assert recipes.sha256(texts / "m") == recipes.sha256(gpt)
    assert "3 files are the parts of 3 ranks" in done[0][2] and "tokens do not fill an item" in done[0][2]


@pytest.mark.parametrize("tokens", ["chars", "words:12"])
def test_other_vocabularies(quern, run_quern, texts, tokens):
    """Documents of tables. Of four ranks one has no file, or no text."""
    (texts / "blank.csv").write_text('text,y\n"",c0\n,c1\n')
    more = ["--text", "text", "--tokens", tokens, *NEXT, "1"]
    blank = ["blank.csv"] if tokens == "chars" else []
    run_quern("train", *named("--data", "r{}.csv"), *more, "--quiet", "-o", "a", cwd=texts)
    parts = named("--data-parts", "r{}.csv") + [word for name in blank for word in ("--data-parts", name)]
    ranks.run(quern, 4, "train", *parts, *more, "--quiet", "-o", "b", cwd=texts)
    assert recipes.sha256(texts / "a") == recipes.sha256(texts / "b")


def test_texts_with_labels(quern, run_quern, texts):
    more = ["--text", "text", "--label", "y", "--tokens", "words:20", "--context", "8", *FAST, "--epochs", "1",
            "--model", "embedding 300 8; pool mean; dense 3 softmax"]
    run_quern("train", *named("--data", "r{}.csv"), *more, "--quiet", "-o", "a", cwd=texts)
    done = ranks.run(quern, 3, "train", *named("--data-parts", "r{}.csv"), *more, "-o", "b", cwd=texts)
    assert recipes.sha256(texts / "a") == recipes.sha256(texts / "b")
    assert "r1.csv: " in done[0][2] and " of 12 texts are cut to 8 tokens" in done[0][2]


def test_columns_of_texts(quern, run_quern, texts):
    """Their words count. The column of few rows looks like one of categories."""
    more = ["--label", "y", "--text-features", "words,chars:3..4", *FAST, "--epochs", "1", "--model", "dense 3 softmax",
            "--optimizer", "sgd"]
    run_quern("train", *named("--data", "r{}.csv"), *more, "--quiet", "-o", "a", cwd=texts)
    ranks.run(quern, 3, "train", *named("--data-parts", "r{}.csv"), *more, "--quiet", "-o", "b", cwd=texts)
    assert recipes.sha256(texts / "a") == recipes.sha256(texts / "b")


def measures(line):
    found = json.loads(line)
    return {key: found[key] for key in found if key not in ("seconds", "file", "data")}


@pytest.mark.parametrize("files, more", [("t{}.txt", ["--item", "line"]), ("t{}.txt", []),
                                         ("r{}.csv", ["--text", "text", "--item", "row"])])
def test_predictions(quern, run_quern, texts, gpt, files, more):
    """A line or a row of several windows is one item, whatever rank has it."""
    want = run_quern("evaluate", "gpt", *named("--data", files), *more, "--json", cwd=texts).stdout
    run_quern("predict", "gpt", *named("--data", files), *more, "-o", "one.csv", cwd=texts)
    own = {k: ["--data-parts", files.format(k)] for k in range(3)}
    done = ranks.run(quern, 3, "evaluate", "gpt", *more, "--json", cwd=texts, own=own)
    assert measures(done[0][1]) == measures(want)
    ranks.run(quern, 3, "predict", "gpt", *more, "-o", "part-%r.csv", cwd=texts, own=own)
    written = [(texts / f"part-{rank}.csv").read_text().splitlines() for rank in range(3)]
    assert [written[0][0], *(line for lines in written for line in lines[1:])] == \
        (texts / "one.csv").read_text().splitlines()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_rank_that_ends(quern, run_quern, texts, copies):
    """Its texts are read again with the vocabulary of all, or have a copy. It ends between two epochs."""
    more = ["--tokens", "bpe:300", *NEXT, "6", "--json"]
    run_quern("train", *named("--data", "t{}.txt"), *more, "-o", "a", cwd=texts)
    files = {k: texts / f"t{k}.txt" for k in range(3)}
    if copies > 1:
        files[2] = texts / "gone.txt"
        files[2].write_text((texts / "t2.txt").read_text())
    own = {k: ["--data-parts", files[k]] for k in range(3)}
    with ranks.Ranks(quern, 3, "train", *more, "--data-copies", str(copies), "-o", "b", cwd=texts, own=own) as job:
        for line in job.rank[0].stdout:
            if json.loads(line)["event"] == "epoch":
                break
        if copies > 1:
            files[2].unlink()
        job.rank[2].kill()
        done = job.wait()
    assert done[0][0] == done[1][0] == 0
    assert recipes.sha256(texts / "a") == recipes.sha256(texts / "b")


def test_what_is_not_one_row(quern, texts):
    (texts / "i.bin").write_bytes(bytes(200))
    (texts / "i.npy").write_bytes(b"\x93NUMPY\1\0\x76\0" + b"{'descr': '<u4', 'fortran_order': False, 'shape': (90,), }"
                                  .ljust(117) + b"\n" + bytes(360))
    own = {0: ["--data-parts", "i.bin"], 1: ["--data-parts", "i.npy"]}
    done = ranks.run(quern, 2, "train", "--tokens", "ids", *NEXT, "1", "-o", "m", cwd=texts, own=own, status=1)
    assert "one has 16 bits a token, and the other 32" in done[0][2]
    done = ranks.run(quern, 2, "train", *named("--data-parts", "t{}.txt"), "--tokens", "bpe:9", *NEXT, "1", "-o", "m",
                     cwd=texts, status=None)
    assert "there may be 257 to" in "".join(err for _, _, err in done)


def test_a_part_without_tokens(quern, run_quern, tmp_path):
    """Its rank has no least number, which is not 0."""
    (tmp_path / "a.csv").write_text("y,t\na,hello\nb,other\n")
    (tmp_path / "b.csv").write_text("y,t\na,\nb,\n")
    more = ["--label", "y", "--text", "t", "--tokens", "bytes", "--context", "5"]
    alone = run_quern("data", "info", "a.csv", "b.csv", *more, cwd=tmp_path).stdout
    done = ranks.run(quern, 2, "data", "info", "--data-parts", "a.csv", "--data-parts", "b.csv", *more, cwd=tmp_path)
    assert "from 101 to 116" in alone and done[0][1] == alone
