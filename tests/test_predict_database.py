"""Predictions and evaluations in tables of SQLite and PostgreSQL: whole, once, and never in the place of
others."""

import csv
import json
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import numpy as np
import pytest

from machine import LONG
from test_postgres import Server

NAMES = ["grün", 'a "b", \'c\'', "back\\slash\ttab"]


@pytest.fixture(scope="module")
def small(run_quern, tmp_path_factory):
    """A model of three classes with names that SQL, CSV and COPY treat specially, and rows without a value."""
    folder = tmp_path_factory.mktemp("database")
    random = np.random.default_rng(5)
    x = random.normal(size=(60, 2))
    with open(folder / "t.csv", "w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["a", "b", "kind"])
        for i, (a, b) in enumerate(x):
            rows.writerow([f"{a:.3f}", "" if i % 20 == 7 else f"{b:.3f}", NAMES[int(a > 0) + int(a + b > 1)]])
    run_quern("train", "--data", folder / "t.csv", "--label", "kind", "--missing", "drop", "--model",
              "dense 3 softmax", "--epochs", 2, "-o", folder / "m")
    run_quern("predict", folder / "m", "--data", folder / "t.csv", "-o", folder / "p.csv", "--outputs")
    return folder


def rows_of(small):
    """What the CSV file says, as a database has it."""
    def value(name, cell):
        if not cell or name in ("label", "prediction"):
            return cell or None
        return int(cell) if name == "item" else float(np.float32(cell))
    with open(small / "p.csv", newline="") as file:
        return [tuple(value(k, v) for k, v in row.items()) for row in csv.DictReader(file)]


def ask(path, sql, *values):
    with sqlite3.connect(path) as base:
        return base.execute(sql, values).fetchall()


def predict(run_quern, small, to, *more, **how):
    return run_quern("predict", small / "m", "--data", small / "t.csv", "-o", to, "--outputs", *more, **how)


def test_sqlite(run_quern, small, tmp_path):
    """The rows of the CSV file, once for each run; other tables stay."""
    path, table = tmp_path / "r.db", 'odd "name"'
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE mine (x)")
    to = f"sqlite:{path}?table={table.replace(' ', '%20')}"
    told = json.loads(predict(run_quern, small, to, "--json").stdout)
    again = json.loads(predict(run_quern, small, to, "--json", "--threads", 1).stdout)
    assert told["added"] and not again["added"] and told["run"] == again["run"]
    assert ", run b, " in predict(run_quern, small, to + "&run=b").stdout
    quoted = '"odd ""name"""'
    columns = "item, label, prediction, score, p0, p1, p2"
    for run in (told["run"], "b"):
        assert ask(path, f"SELECT {columns} FROM {quoted} WHERE run = ? ORDER BY item", run) == rows_of(small)
    assert ask(path, f"SELECT count(*) FROM {quoted}") == [(120,)]
    assert ask(path, "SELECT count(*) FROM mine") == [(0,)]
    assert ask(path, f"SELECT count(*) FROM {quoted} WHERE prediction IS NULL AND score IS NULL") == [(6,)]


def outputs_of(small, run_quern, folder):
    """The outputs of the last layer before softmax, as the CSV file has them."""
    run_quern("predict", small / "m", "--data", small / "t.csv", "--layer", 0, "-o", folder / "o.csv")
    with open(folder / "o.csv", newline="") as file:
        return [tuple([item, row.pop("kind"), *(np.float32(cell) if cell else None for cell in row.values())])
                for item, row in enumerate(csv.DictReader(file))]


def test_outputs_of_a_layer(run_quern, small, tmp_path):
    """The numbers of the CSV file, once for each run, beside predictions."""
    path = tmp_path / "r.db"
    predict(run_quern, small, f"sqlite:{path}")
    told = [json.loads(run_quern("predict", small / "m", "--data", small / "t.csv", "--layer", layer, "-o", f"sqlite:{path}",
                                 "--json").stdout) for layer in (0, "-1")]
    assert [one["added"] for one in told] == [True, False] and told[0]["run"] == told[1]["run"] and told[0]["shape"] == [3]
    rows = ask(path, "SELECT item, kind, f0, f1, f2 FROM outputs ORDER BY item")
    assert rows == outputs_of(small, run_quern, tmp_path) and rows[7][2] is None
    for words, what in (["--output-labels", tmp_path / "l.npy"], "--output-labels is for NPY"), (["--top", 2], "--layer writes the outputs"):
        assert what in run_quern("predict", small / "m", "--data", small / "t.csv", "--layer", 0, "-o", f"sqlite:{path}", *words, status=None).stderr
    other = run_quern("predict", small / "m", "--data", small / "t.csv", "--layer", 0, "-o", f"sqlite:{path}?table=predictions", status=None)
    assert 'lacks the column "kind"' in other.stderr


@pytest.mark.parametrize("table, what", [
    ("item INT, run TEXT, label TEXT", 'lacks the column "prediction" (TEXT)'),
    ("run TEXT, item TEXT, label TEXT, prediction TEXT, score REAL, p0, p1, p2", 'the column "item" of the table is TEXT'),
    ("x CHECK (run <> ''), run TEXT, item INT, label TEXT, prediction TEXT NOT NULL, score REAL, p0, p1, p2",
     "NOT NULL constraint failed"),
])
def test_a_table_that_does_not_fit(run_quern, small, tmp_path, table, what):
    """It stays as it is, with its rows; what is wrong is said with the remedy."""
    path = tmp_path / "r.db"
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE predictions ({table})")
    before = path.read_bytes()
    told = predict(run_quern, small, f"sqlite:{path}", status=None).stderr
    assert what in told and "?table=NAME" in told.splitlines()[-1] or "new ones" in told, told
    assert path.read_bytes() == before


@pytest.mark.parametrize("to, what, remedy", [
    ("sqlit:r.db", '"sqlit:" is not an address', "sqlite:"),
    ("foo://x/y", '"foo:" is not an address', "./foo://x/y"),
    ("sqlite:r.db?tabel=x", 'the option "tabel"', "?table=NAME"),
    ("sqlite:r.db?table=", 'the option "table" of the address has no value', "?table=NAME"),
    ("sqlite:", "names no file", "sqlite:FILE"),
    ("r.parquet", "answers are written as CSV", "quern data convert"),
    ("sqlite:s3://b/r.db", "changes in place", "a SQLite file of this machine"),
    ("sqlite:t.csv", "not a database", "name a SQLite file"),
    ("postgresql://me:word@127.0.0.1:1/x", "holds a password", "~/.pgpass"),
    ("postgresql://me@127.0.0.1:1/x?table=y", "there is no connection to the server", "check host"),
])
def test_addresses_that_are_refused(run_quern, small, tmp_path, to, what, remedy):
    """Before the prediction, and nothing is written."""
    (tmp_path / "t.csv").write_bytes((small / "t.csv").read_bytes())
    done = run_quern("predict", small / "m", "--data", "t.csv", "-o", to, status=None, cwd=tmp_path)
    assert done.returncode and what in done.stderr and remedy in done.stderr.splitlines()[-1], done.stderr
    assert "word" not in done.stderr.replace("password", "")
    assert sorted(os.listdir(tmp_path)) == ["t.csv"]


def test_every_command_that_writes_refuses_a_scheme(run_quern, small, tmp_path):
    for args in (["train", "--data", small / "t.csv", "--epochs", 1, "-o", "foo://m"],
                 ["data", "convert", small / "t.csv", "-o", "sqlit:x.csv"],
                 ["data", "synth", "digits", "-o", "foo://d.csv"],
                 ["evaluate", small / "m", "--data", small / "t.csv", "-o", "foo:x.json"]):
        told = run_quern(*args, status=None, cwd=tmp_path)
        assert told.returncode and "is not an address" in told.stderr, told.stderr
    assert os.listdir(tmp_path) == []


def test_a_database_is_not_replaced_by_a_csv_file(run_quern, small, tmp_path):
    path = tmp_path / "r.db"
    predict(run_quern, small, f"sqlite:{path}")
    told = predict(run_quern, small, path, status=None)
    assert told.returncode and "SQLite database" in told.stderr and f"sqlite:{path}" in told.stderr
    assert ask(path, "SELECT count(*) FROM predictions") == [(60,)]


def test_killed_before_the_commit(quern, run_quern, small, tmp_path):
    """A reader holds up the commit; SQLite's journal says that the rows are being written."""
    path = tmp_path / "r.db"
    with sqlite3.connect(path) as base:
        base.executescript("CREATE TABLE mine (x); INSERT INTO mine VALUES (1), (2)")
    reader = sqlite3.connect(path)
    cursor = reader.execute("SELECT x FROM mine")
    cursor.fetchone()
    child = subprocess.Popen([quern, "predict", small / "m", "--data", small / "t.csv", "-o", f"sqlite:{path}",
                              "--outputs"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not (tmp_path / "r.db-journal").exists():
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    cursor.close()
    reader.close()
    assert ask(path, "SELECT count(*) FROM sqlite_master") == [(1,)]
    predict(run_quern, small, f"sqlite:{path}")
    predict(run_quern, small, f"sqlite:{path}")
    assert ask(path, "SELECT count(*), count(DISTINCT item) FROM predictions") == [(60, 60)]


def test_evaluations(run_quern, small, tmp_path):
    """A JSON file, and a row: NULL where a number is not defined."""
    path, file = tmp_path / "r.db", tmp_path / "e.json"
    args = ["evaluate", small / "m", "--data", small / "t.csv"]
    told = json.loads(run_quern(*args, "--json", "-o", file).stdout)
    written = json.loads(file.read_text())
    assert written == {k: told[k] for k in ("data", "model", "evaluation")}
    assert "already" not in run_quern(*args, "-o", f"sqlite:{path}").stderr
    assert "already" in run_quern(*args, "-o", f"sqlite:{path}").stderr
    [row] = ask(path, "SELECT data, model, items, accuracy, log_loss, rmse, top5_accuracy, json FROM evaluations")
    numbers = told["evaluation"]
    assert row[:3] == (told["data"], told["model"], 57) and row[3:5] == (numbers["accuracy"], numbers["log_loss"])
    assert row[5:7] == (None, None) and json.loads(row[7]) == numbers


# ------------------------------------------------------------------ PostgreSQL


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    for above in [folder, *folder.parents][:3]:
        above.chmod(0o755)
    made = Server(folder)
    yield made
    made.stop()


@pytest.fixture
def password(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hidden word")


class Proxy:
    """Between a client and the server. It ends the first connection that sends `word`: before the server
    gets it, or, with `after`, when the server has answered."""

    def __init__(self, port, word, after):
        self.port, self.word, self.after, self.cut, self.connections = port, word, after, threading.Event(), 0
        self.broken = None  # the number of the connection that was ended
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def address(self):
        return f"postgresql://me@127.0.0.1:{self.listener.getsockname()[1]}/postgres?sslmode=disable"

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.port))
            for one, other, up in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.carry, args=(one, other, up), daemon=True).start()

    def carry(self, one, other, up):
        while data := one.recv(1 << 16):
            if up and self.word in data and not self.cut.is_set():
                self.broken = self.connections
                self.cut.set()
                if self.after:
                    other.sendall(data)
                    other.recv(1)  # the answer, which one of both threads gets, and the client never
                break
            if not up and self.cut.is_set() and self.connections == self.broken:
                break
            try:
                other.sendall(data)
            except OSError:
                break
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@LONG
def test_postgres(server, password, run_quern, small):
    to = server.address + "?table=public.Odd%20name"
    told = json.loads(predict(run_quern, small, to, "--json").stdout)
    again = json.loads(predict(run_quern, small, to, "--json").stdout)
    assert told["added"] and not again["added"]
    rows = json.loads(server.psql('SELECT json_agg(t ORDER BY item) FROM "Odd name" t'))
    assert {row.pop("run") for row in rows} == {told["run"]}
    expected = [[np.float32(v) if isinstance(v, float) else v for v in row] for row in rows_of(small)]
    assert [[np.float32(v) if isinstance(v, float) else v for v in row.values()] for row in rows] == expected
    server.psql("CREATE TABLE other (run text, item text)")
    refused = predict(run_quern, small, server.address + "?table=other", status=None).stderr
    assert 'the column "item" of the table is text, and needs to be bigint' in refused
    run_quern("evaluate", small / "m", "--data", small / "t.csv", "-o", server.address)
    assert float(server.psql("SELECT accuracy FROM evaluations WHERE rmse IS NULL")) > 0.2
    assert "hidden" not in refused + told["run"]
    for _ in range(2):
        run_quern("predict", small / "m", "--data", small / "t.csv", "--layer", 0, "-o", server.address)
    rows = [list(row.values())[1:] for row in json.loads(server.psql("SELECT json_agg(t ORDER BY item) FROM outputs t"))]
    assert [[np.float32(v) if isinstance(v, float) else v for v in row] for row in rows] == [
        list(row) for row in outputs_of(small, run_quern, small)]


@LONG
@pytest.mark.parametrize("word, after", [(b"COPY ", False), (b"COMMIT", False), (b"COMMIT", True)])
def test_a_lost_connection(server, password, run_quern, small, word, after):
    """Whether the commit was done is not known; the rows are there once all the same."""
    table = f"t_{word.strip().decode().lower()}{int(after)}"
    proxy = Proxy(server.port, word, after)
    told = json.loads(predict(run_quern, small, f"{proxy.address}&table={table}", "--json").stdout)
    assert proxy.cut.is_set() and proxy.connections == 3 and told["added"]  # one of them looked first
    assert server.psql(f'SELECT count(*), count(DISTINCT item) FROM "{table}"').strip() == "60|60"


@LONG
def test_killed_at_the_commit_of_a_server(server, password, quern, run_quern, small):
    proxy = Proxy(server.port, b"COMMIT", True)
    child = subprocess.Popen([quern, "predict", small / "m", "--data", small / "t.csv", "--outputs", "-o",
                              f"{proxy.address}&table=killed"], stdout=subprocess.DEVNULL)
    assert proxy.cut.wait(60)
    child.send_signal(signal.SIGKILL)
    child.wait()
    predict(run_quern, small, server.address + "?table=killed")
    assert server.psql("SELECT count(*), count(DISTINCT item) FROM killed").strip() == "60|60"


@LONG
def test_runs_of_trainings(server, password, run_quern, small, tmp_path):
    """Two trainings in a table of the server, read by all commands, and by PostgreSQL."""
    for name, epochs in (("short", 1), ("long", 3)):
        run_quern("train", "--data", small / "t.csv", "--label", "kind", "--missing", "drop", "--model", "dense 3 softmax",
                  "--epochs", epochs, "--runs", server.address, "--run-name", name, "-o", tmp_path / "m")
    rows = server.psql("SELECT name, state, epochs, model FROM quern_runs ORDER BY epochs").splitlines()
    assert [row.split("|")[:3] for row in rows] == [["short", "finished", "1"], ["long", "finished", "3"]]
    listed = [json.loads(line) for line in run_quern("runs", "list", "--runs", server.address, "--json")
              .stdout.splitlines()]
    assert [(r["name"], r["digest"]) for r in listed] == [(n, row.split("|")[3]) for n, row in
                                                          zip(["short", "long"], rows)]
    shown = json.loads(run_quern("runs", "show", listed[1]["id"][:6], "--runs", server.address, "--json").stdout)
    assert shown["recipe"]["epochs"] == "3" and shown["name"] == "long"
    assert "epochs" in run_quern("runs", "compare", "short", "long", "--runs", server.address).stdout
    run_quern("runs", "export", f"{server.address}:long", "--format", "tensorboard", "-o", tmp_path / "t")
    assert any((tmp_path / "t").rglob("*tfevents*"))
    server.psql("CREATE SCHEMA other; CREATE TABLE other.quern_runs (x int)")
    told = run_quern("runs", "list", "--runs", server.address + "?options=-csearch_path%3Dother", status=None)
    assert told.returncode and "not one of this version's runs" in told.stderr
    told = run_quern("runs", "show", "absent", "--runs", server.address, status=None).stderr
    assert 'there is no run "absent"' in told and "me@" not in told
