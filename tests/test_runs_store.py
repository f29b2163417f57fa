"""`quern train --runs` and `quern runs list|show|compare|export`: the file is read with Python's sqlite3 beside
them, and written by several processes at once."""

import json
import os
import signal
import sqlite3
import subprocess
import threading
import time

import pytest


def run(quern, *words, **more):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=120, **more)


TABLE = "".join(f"{i % 2},{(i * 7) % 10 + 6 * (i % 2)},{i % 5}\n" for i in range(60))


def train(quern, folder, out, *more, **how):
    return run(quern, "train", "--data", "d.csv", "--threads", 1, "--devices", "cpu", "-o", out,
               "--optimizer", "sgd", "--quiet", *more, cwd=folder, **how)


@pytest.fixture(scope="module")
def store(quern, tmp_path_factory):
    """The folder of a file with three runs."""
    folder = tmp_path_factory.mktemp("store")
    (folder / "d.csv").write_text(TABLE)
    for out, *more in (["small.st", "--model", "dense 2 softmax", "--epochs", 3, "--valid", 0.2, "--run-dir", "record"],
                       ["large.st", "--model", "dense 2 softmax", "--epochs", 4, "--lr", 0.5, "--test", "d.csv"],
                       ["other.st", "--run-name", "it's\n<b>", "--task", "regress", "--model", "dense 1 none", "--epochs", 2]):
        done = train(quern, folder, out, "--runs", "runs.sqlite", *more)
        assert done.returncode == 0, done.stderr
    return folder


def rows(path, what="*"):
    base = sqlite3.connect(path)
    base.row_factory = sqlite3.Row
    try:
        return [dict(r) for r in base.execute(f"SELECT {what} FROM runs ORDER BY rowid")]
    finally:
        base.close()


def test_what_the_file_holds(quern, store):
    small, large, other = rows(store / "runs.sqlite")
    record = json.loads((store / "record" / "run.json").read_text())
    assert [r["name"] for r in (small, large, other)] == ["small", "large", "it's\n<b>"]
    assert small["metrics"] == (store / "record" / "metrics.csv").read_text()
    inside = json.loads(small["record"])
    for key in ("state", "started", "host", "command", "recipe", "model", "valid", "workers", "seconds"):
        assert inside[key] == record[key], key
    assert (small["state"], small["epochs"], small["scored"]) == ("finished", 3, "valid")
    assert small["data"] == record["recipe"]["data"] and small["model"] == record["model"]
    assert small["accuracy"] == pytest.approx(record["valid"]["correct"] / record["valid"]["items"])
    assert small["loss"] == pytest.approx(record["valid"]["loss"], rel=1e-6)
    assert large["scored"] == "test" and other["accuracy"] is None and other["rmse"] > 0
    assert len({r["id"] for r in (small, large, other)}) == 3 and len(small["id"]) == 12


def test_list_show_and_compare(quern, store):
    known = rows(store / "runs.sqlite")
    listed = [json.loads(line) for line in run(quern, "runs", "list", "--runs", "runs.sqlite", "--json", cwd=store)
              .stdout.splitlines()]
    assert [(r["id"], r["name"], r["digest"], r["accuracy"]) for r in listed] == [
        (r["id"], r["name"], r["model"], r["accuracy"]) for r in known]
    env = {**os.environ, "QUERN_RUNS": str(store / "runs.sqlite")}
    lines = run(quern, "runs", "list", env=env).stdout.splitlines()
    assert len(lines) == 4 and lines[1].split()[:2] == [known[0]["id"], "small"] and "it's?<b>" in lines[3]
    for name in (known[1]["id"], known[1]["id"][:6], "large"):
        shown = json.loads(run(quern, "runs", "show", name, "--json", env=env).stdout)
        assert shown["id"] == known[1]["id"] and shown["recipe"]["lr"] == "0.5"
    shown = run(quern, "runs", "show", "small", env=env).stdout
    assert f"digest           {known[0]['model']}\n" in shown and "  model            dense 2 softmax\n" in shown
    small, large = map(json.loads, run(quern, "runs", "compare", "small", "large", "--json", env=env).stdout.splitlines())
    assert small["differs"] == {"valid": "0.2", "lr": "0.1", "epochs": "3"}
    assert large["differs"] == {"valid": "0", "lr": "0.5", "epochs": "4"}
    text = run(quern, "runs", "compare", "small", "large", env=env).stdout
    assert [line.split() for line in text.splitlines() if line.startswith("lr ")] == [["lr", "0.1", "0.5"]]


def test_runs_of_the_file_are_exported_and_reported(quern, store, tmp_path):
    for name, *more in (["small", "--runs", "runs.sqlite"], ["runs.sqlite:small"]):
        out = tmp_path / name
        done = run(quern, "runs", "export", name, *more, "--format", "mlflow", "-o", out, cwd=store)
        assert done.returncode == 0, done.stderr
        found = next(out.glob("*/*/artifacts"))
        assert (found / "metrics.csv").read_text() == (store / "record" / "metrics.csv").read_text()
    done = run(quern, "report", "small", "record", "--runs", "runs.sqlite", "-o", tmp_path / "r.html", cwd=store)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "r.html").read_text()
    assert page.count("<th scope=\"row\">small</th>") == 1 and page.count("<th scope=\"row\">record</th>") == 1


def changed(store, folder, sql, *values):
    """A copy of the file, changed by somebody else."""
    path = folder / "changed.sqlite"
    path.write_bytes((store / "runs.sqlite").read_bytes())
    base = sqlite3.connect(path, isolation_level=None)
    base.execute(sql, values)
    base.close()
    return path


def test_files_that_others_changed(quern, store, tmp_path):
    path = changed(store, tmp_path, "UPDATE runs SET record='{' WHERE name='small'")
    for words in (["show", "small"], ["compare", "small", "large"], ["compare", "large", "small"]):
        done = run(quern, "runs", *words, "--runs", path)
        assert done.returncode == 1 and "its recipe cannot be read" in done.stderr
    path = changed(store, tmp_path, "UPDATE runs SET name=? WHERE name='small'", "\u00e9" * 23 + "\u009b\u00e9")
    listed = run(quern, "runs", "list", "--runs", path)
    assert "  " + "\u00e9" * 23 + "?  " in listed.stdout
    path = changed(store, tmp_path, "PRAGMA user_version = 2")
    assert "newer version" in run(quern, "runs", "list", "--runs", path).stderr


def test_two_writers_lose_nothing(quern, tmp_path):
    """Two processes train one model after the other, while a third holds the file's lock for a while."""
    (tmp_path / "d.csv").write_text(TABLE)
    found = []

    def work(who):
        for i in range(4):
            found.append(train(quern, tmp_path, f"{who}{i}", "--epochs", 1, "--runs", "runs.sqlite").stderr)

    threads = [threading.Thread(target=work, args=(who,)) for who in "ab"]
    for thread in threads:
        thread.start()
    while not (tmp_path / "runs.sqlite").exists() or (tmp_path / "runs.sqlite").stat().st_size == 0:
        time.sleep(0.001)
    base = sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None, timeout=60)
    base.execute("BEGIN EXCLUSIVE")
    time.sleep(0.2)
    base.execute("COMMIT")
    base.close()
    for thread in threads:
        thread.join()
    assert found == [""] * 8
    assert sorted((r["name"], r["state"]) for r in rows(tmp_path / "runs.sqlite")) == sorted(
        (f"{who}{i}", "finished") for who in "ab" for i in range(4))


def refused(quern, folder, path, **how):
    """What a training says, in spite of --quiet, before its first step of a file of runs that it cannot use."""
    done = train(quern, folder, "m", "--epochs", 1, "--runs", path, **how)
    assert done.returncode == 1 and not (folder / "m").exists() and done.stdout == ""
    return done.stderr


def test_a_file_that_cannot_be_used_ends_a_training_at_once(quern, tmp_path):
    (tmp_path / "d.csv").write_text(TABLE)
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    base = sqlite3.connect(tmp_path / "own.sqlite")
    base.execute("CREATE TABLE mine (a)")
    base.close()
    before = {name: (tmp_path / name).read_bytes() for name in ("text.sqlite", "own.sqlite")}
    assert "not a database" in refused(quern, tmp_path, "text.sqlite")
    assert "not one of runs" in refused(quern, tmp_path, "own.sqlite")
    assert "unable to open" in refused(quern, tmp_path, "none/x.sqlite")
    assert "Is a directory" in refused(quern, tmp_path, ".")
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libsqlite3.so.0").write_text("no library")
    said = refused(quern, tmp_path, "new.sqlite", env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "lib")})
    assert "libsqlite3-0" in said and not (tmp_path / "new.sqlite").exists()
    (tmp_path / "empty").touch()
    done = run(quern, "runs", "list", "--runs", "empty", cwd=tmp_path)
    assert done.returncode == 1 and "the file is empty" in done.stderr
    assert "Is a directory" in run(quern, "runs", "list", "--runs", ".", cwd=tmp_path).stderr


def test_a_resumed_run_goes_on_in_its_row(quern, tmp_path):
    (tmp_path / "d.csv").write_text(TABLE)
    words = ["--epochs", 10_000_000, "--model", "dense 2 softmax", "--runs", "runs.sqlite", "--checkpoint", "ck"]
    command = [quern, "train", "--data", "d.csv", "--threads", "1", "--devices", "cpu", "-o", "m", "--optimizer", "sgd",
               "--json"]
    going = subprocess.Popen([*command, *map(str, words)], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                             stderr=subprocess.DEVNULL)
    try:
        while '"event":"epoch"' not in (line := going.stdout.readline()):
            assert line, "it ended"
    finally:
        going.send_signal(signal.SIGINT)
        going.communicate()
    first, = rows(tmp_path / "runs.sqlite")
    assert first["state"] == "interrupted" and 0 < first["epochs"] < 10_000_000
    for more, count in ((5, 1), (9, 2)):  # what has ended is not continued in its row
        words[1] = first["epochs"] + more
        done = train(quern, tmp_path, "m", *words, "--resume")
        assert done.returncode == 0, done.stderr
        found = rows(tmp_path / "runs.sqlite")
        assert len(found) == count and found[0]["id"] == first["id"]
        assert (found[-1]["state"], found[-1]["epochs"]) == ("finished", words[1])
    lines = found[0]["metrics"].splitlines()
    assert [line.split(",")[0] for line in lines] == ["epoch", *map(str, range(1, first["epochs"] + 6))]
    assert first["metrics"].splitlines() == lines[:1 + first["epochs"]]


def test_what_runs_refuses(quern, store, tmp_path):
    content = (store / "runs.sqlite").read_bytes()
    (tmp_path / "cut.sqlite").write_bytes(content[:len(content) // 2])
    for words, code, text in ((["list"], 2, "QUERN_RUNS"), (["list", "--runs", tmp_path / "none"], 1, "none"),
                              (["list", "--runs", tmp_path / "cut.sqlite"], 1, "malformed"),
                              (["list", "--runs", "d.csv"], 1, "not a database"),
                              (["show", "nobody", "--runs", "runs.sqlite"], 1, "there is no run"),
                              (["show", "it", "--runs", "runs.sqlite"], 1, "there is no run"),
                              (["compare", "small", "--runs", "runs.sqlite"], 2, "two runs"),
                              (["export", "runs.sqlite:nobody", "--format", "mlflow", "-o", tmp_path / "x"], 1, "there is no run")):
        done = run(quern, "runs", *words, cwd=store)
        assert done.returncode == code and text in done.stderr, (words, done.stderr)


def test_a_name_of_two_runs_is_refused(quern, store, tmp_path):
    (tmp_path / "d.csv").write_text(TABLE)
    for _ in range(2):
        train(quern, tmp_path, "twice", "--epochs", 1, "--runs", "r.sqlite")
    done = run(quern, "runs", "show", "twice", "--runs", "r.sqlite", cwd=tmp_path)
    assert done.returncode == 1 and "several runs" in done.stderr
    done = run(quern, "runs", "export", "twice", "--runs", "r.sqlite", "--format", "mlflow", "-o", "x", cwd=tmp_path)
    assert done.returncode == 1 and "several runs" in done.stderr
