"""Notes before and after a training: features that tell the label, names of items, few items of a
class, a training that was too short or too long. And words that other programs know."""

import random

import numpy as np
import pytest

import parquet_writer


def notes(run_quern, tmp_path, rows, *more):
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    done = run_quern("train", "--data", tmp_path / "t.csv", "--threads", "1", *more, "-o", tmp_path / "m")
    return [line.removeprefix("note: ") for line in done.stderr.splitlines() if line.startswith("note: ")]


def table(items, kind, seed=1, **columns):
    """Two numbers and a town beside the given columns of functions of item and kind."""
    draw = random.Random(seed)
    kinds = [kind(i) for i in range(items)]
    rows = [["kind", "x", "y", "town", *columns]]
    for i, k in enumerate(kinds):
        rows.append([k, f"{draw.gauss(0, 1) + (k == 'b'):.4f}", f"{draw.gauss(0, 1):.4f}",
                     draw.choice(["Ulm", "Bern"]), *(make(i, k) for make in columns.values())])
    return rows


def test_features_that_tell_the_label(run_quern, tmp_path):
    once = ["--label", "kind", "--epochs", "1"]
    usual = table(60, lambda i: "ab"[i * i % 7 % 2])
    assert notes(run_quern, tmp_path, usual, *once) == []
    copied = table(60, lambda i: "ab"[i * i % 7 % 2], alive=lambda i, k: {"a": "no", "b": "yes"}[k],
                   code=lambda i, k: 2.5 * (k == "b") + i % 2, constant=lambda i, k: 7)
    told = notes(run_quern, tmp_path, copied, *once)
    assert [line.split(" tells ")[0] for line in told] == ['column "alive"', 'column "code"']
    assert all("--drop" in line for line in told)
    assert notes(run_quern, tmp_path, copied, *once, "--drop", "alive,code") == []
    copied[-1][4] = {"no": "yes", "yes": "no"}[copied[-1][4]]  # one item that differs
    copied[30][5] = ""
    assert not any("tells" in line for line in notes(run_quern, tmp_path, copied, *once, "--missing", "mean"))
    # A value for each two items would tell it by chance, and so would one class, or a few items.
    many = table(60, lambda i: "ab"[i * i % 7 % 2], pair=lambda i, k: f"{k}{i % 15}")
    assert notes(run_quern, tmp_path, many, *once) == []
    assert not any("tells" in line for line in notes(run_quern, tmp_path, table(60, lambda i: "a"), *once))
    few = [row[:2] + row[4:5] for row in table(12, lambda i: "ab"[i % 2], alive=lambda i, k: k)]
    assert notes(run_quern, tmp_path, few, *once) == []
    real = [["price", "x", "same"], *([f"{i * 0.37}", i % 5, f"{i * 0.37}"] for i in range(40))]
    told = notes(run_quern, tmp_path, real, "--label", "price", "--epochs", "1")
    assert len(told) == 1 and told[0].startswith('column "same" tells the label by itself')
    # A replay knows its data.
    done = run_quern("replay", tmp_path / "m", "--data", tmp_path / "t.csv", "--label", "price")
    assert "tells" not in done.stderr


def test_names_and_small_classes(run_quern, tmp_path):
    once = ["--label", "kind", "--epochs", "1"]
    named = table(60, lambda i: "ab"[i * i % 7 % 2], who=lambda i, k: f"person {i}")
    told = notes(run_quern, tmp_path, named, *once)
    assert len(told) == 1 and told[0].startswith('column "who" has another text in each item') and "--drop" in told[0]
    rare = table(1000, lambda i: "ab"[i % 200 == 7])
    told = notes(run_quern, tmp_path, rare, *once)
    assert told == ['class "b" has 5 of 1000 items, so a network may never predict it: with --class-weight balanced '
                    "all classes weigh the same"]
    assert notes(run_quern, tmp_path, rare, *once, "--class-weight", "balanced") == []
    assert notes(run_quern, tmp_path, table(1000, lambda i: "ab"[i % 40 == 7]), *once) == []


def test_trainings_that_end_too_early_or_too_late(run_quern, tmp_path):
    """Of labels that are noise the validation loss rises, of a rule it falls for a while."""
    draw = random.Random(2)
    noise = [["kind", *"abcdef"], *(["ab"[draw.random() < 0.5], *(f"{draw.gauss(0, 1):.3f}" for _ in "abcdef")]
                                    for _ in range(80))]
    how = ["--label", "kind", "--valid", "0.3", "--optimizer", "adam", "--lr", "0.01", "--batch", "16"]
    told = notes(run_quern, tmp_path, noise, *how, "--epochs", "100")
    late = [line for line in told if "is the lowest" in line or "was lowest after epoch" in line]
    assert len(late) == 1 and "--keep best" in late[0] and "--early-stopping" in late[0]
    for more in (["--keep", "best"], ["--early-stopping", "5"]):
        assert not any("was lowest after" in line for line in notes(run_quern, tmp_path, noise, *how,
                                                                    "--epochs", "100", *more))
    rule = [["kind", "x", "y"], *(["ab"[x * y > 0], f"{x:.3f}", f"{y:.3f}"] for x, y in (
        (draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(300)))]
    slow = [*how[:-3], "0.002", "--batch", "16"]
    early = notes(run_quern, tmp_path, rule, *slow, "--epochs", "10")
    assert len(early) == 1 and early[0].startswith("the validation loss still fell at the end") and "--epochs" in early[0]
    assert notes(run_quern, tmp_path, rule, *slow, "--epochs", "9") == []
    assert not any("validation loss" in line for line in notes(run_quern, tmp_path, rule, "--label", "kind", "--valid",
                                                               "0.3"))


@pytest.mark.parametrize("words, says", [
    (["--optimizer", "rmsprop"], 'Quern does not have it, and "adam" is nearest; it is one of sgd'),
    (["--optimizer", "Lion"], 'Quern does not have it, and "adamw" is nearest'),
    (["--optimizer", "adma"], 'did you mean "adam"?'),
    (["--devices", "gpu"], "a GPU is named by its interface, cuda or opencl, as in cuda:0; this machine has cpu")])
def test_names_of_other_programs(run_quern, tmp_path, words, says):
    done = run_quern("train", *words, "-o", tmp_path / "m", status=2)
    assert says in done.stderr


def test_text_that_is_no_table(run_quern, tmp_path):
    (tmp_path / "book.txt").write_text("It was a dark night.\nThe rain fell.\nNobody came.\n")
    done = run_quern("train", "--data", tmp_path / "book.txt", "-o", tmp_path / "m", status=1)
    assert "lines of plain text are not a table: they are read with --tokens chars --context 256" in done.stderr
    (tmp_path / "book.txt").write_text("It was a dark night, so dark.\nThe rain fell.\nNobody came.\n")
    done = run_quern("train", "--data", tmp_path / "book.txt", "-o", tmp_path / "m", status=1)
    assert "a plain text is read with --tokens chars" in done.stderr
    rows = table(120, lambda i: "ab"[i % 2], said=lambda i, k: f"It was {i} times better than {i * 7 % 31}")
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    words = ["train", "--data", tmp_path / "t.csv", "--label", "kind", "-o", tmp_path / "m"]
    done = run_quern(*words, "--text", "none", status=1)
    assert "names and identifiers" in done.stderr and "--drop" in done.stderr and "--text" in done.stderr
    assert "another text in each item" not in run_quern(*words, "--epochs", "1").stderr


def test_cells_that_other_files_may_have(run_quern, tmp_path):
    """A model that was trained without marks and commas does not take them: the message says what to write."""
    def tried(command, text, *words):
        (tmp_path / "t").write_text(text)
        return run_quern(*command, tmp_path / "t", *words, status=1).stderr

    (tmp_path / "t.csv").write_text("y,a\n1,2\n0,3\n1,4\n0,5\n")
    run_quern("train", "--data", tmp_path / "t.csv", "--epochs", "1", "--missing", "mean", "--quiet", "-o", tmp_path / "m")
    predict = ["predict", tmp_path / "m", "--data"]
    assert "make the cell empty, or write NA" in tried(predict, "y,a\n1,2\n0,--\n")
    assert "write all numbers with a decimal point" in tried(["data", "info"], "y;a\n1;2,5\n0;3.5\n1;7.5\n0;8.5\n")
    told = tried(predict, "y,A\n1,2\n")
    assert 'it has "A", which the model does not have; give all columns' in told and f"at {tmp_path / 't'}, model" in told
    told = tried(predict, "y;a\n1;2,5\n0;3,5\n")
    assert 'texts such as "2,5", and the model takes numbers' in told and "with a decimal point" in told
    (tmp_path / "t.csv").write_text("y,a\n1,2024-01-02\n0,2024-01-03\n1,2024-01-04\n0,2024-02-02\n")
    run_quern("train", "--data", tmp_path / "t.csv", "--epochs", "1", "--missing", "mean", "--quiet", "-o", tmp_path / "m")
    told = tried(predict, "y,a\n1,2024-01-05\n0,--\n")
    assert 'holds "--", and the model takes dates there' in told and "make the cell empty" in told
    parquet_writer.write(tmp_path / "p", {"y": np.arange(3)}, 3)
    told = run_quern("data", "info", tmp_path / "p", status=1).stderr
    assert "separated" not in told and "give a table with more columns" in told
    (tmp_path / "empty").mkdir()
    assert "put the files of a table in it" in run_quern("data", "info", tmp_path / "empty", status=1).stderr
    assert "one of several files" in run_quern("data", "info", tmp_path / "t.csv", "-", status=1).stderr


def test_a_dry_run_needs_no_image(run_quern):
    line = ["submit", "--kubernetes", "--dry-run", "train", "--data", "t.csv", "-o", "m.safetensors"]
    done = run_quern(*line)
    assert 'image: "NAME-OF-THE-IMAGE"' in done.stdout and "--image" in done.stderr
    assert "add --image" in run_quern(*line[:2], *line[3:], status=2).stderr
