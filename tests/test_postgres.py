"""Rows of a PostgreSQL server, of Debian's packages, started for the test in a folder of its own."""

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import data_vectors
from machine import LONG

pytestmark = LONG

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) + [
    Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
TABLE = """CREATE TABLE t (y bool, i2 smallint, i8 bigint, f4 real, f8 double precision, n numeric(30, 10),
  c char(4), v varchar, d date, b bytea);
INSERT INTO t SELECT i % 3 = 0, i % 100 - 50, i * 1000000007::bigint * 1000, sin(i), exp(i % 60 - 30) * cos(i),
  i * 1234567.1234567891, 'ab' || i % 3, CASE WHEN i % 7 > 0 THEN chr(233 + i % 5) END, now(), 'x'
  FROM generate_series(1, 1000) i"""


class Server:
    def __init__(self, folder):
        if not FOLDERS:
            pytest.skip("there is no PostgreSQL server (Debian: postgresql)")
        self.bin, self.folder = FOLDERS[-1], folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # The server refuses to run as root.
        self.user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.user:
            shutil.chown(folder, "nobody", "nogroup")
        (folder / "pw").write_text("hidden word")
        (folder / "pw").chmod(0o644)
        self.run("initdb", "-D", folder / "d", "-U", "me", f"--pwfile={folder / 'pw'}", "-A",
                 "scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()

    def run(self, name, *args, **more):
        return subprocess.run([self.bin / name, *args], check=True, cwd=self.folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, **self.user, **more)

    def start(self):
        self.run("pg_ctl", "-D", self.folder / "d", "-w", "-l", self.folder / "log", "-o",
                 f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off", "start")

    def stop(self, how="immediate"):
        self.run("pg_ctl", "-D", self.folder / "d", "-m", how, "stop")

    @property
    def address(self):
        return f"postgresql://me@127.0.0.1:{self.port}/postgres"

    def psql(self, text):
        return subprocess.run([self.bin / "psql", "-qXAt", self.address, "-c", text], check=True, text=True,
                              env={**os.environ, "PGPASSWORD": "hidden word"}, capture_output=True).stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    for above in [folder, *folder.parents][:3]:
        above.chmod(0o755)
    made = Server(folder)
    made.psql(TABLE)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hidden word")


def test_columns(server, run_quern):
    """Against the numbers that psql prints."""
    query = "SELECT y, i2, i8, f4, f8, n, c, v FROM t ORDER BY i8 DESC"
    rows = [line.split("|") for line in server.psql("SET extra_float_digits = 3; " + query).splitlines()]
    words = [sorted({row[k] for row in rows} - {""}, key=str.encode) for k in (6, 7)]
    table = np.array([[np.float32(float(cell)) for cell in row[1:6]] +
                      [words[k].index(cell) if cell else np.nan for k, cell in enumerate(row[6:])]
                      for row in rows], "<f4")
    table[np.isnan(table)] = np.array([0x7FC00000], "<u4").view("<f4")[0]
    labels = np.array([row[0] == "t" for row in rows], "<i4")
    whole = np.array([[int(row[1]), int(row[2])] for row in rows])
    told = json.loads(run_quern("data", "info", server.address, "--query", query, "--json").stdout)
    assert told["format"] == "postgresql" and len(told["table"]) == 7
    assert told["digest"] == data_vectors.digest_of(2, 1000, 7, table.tobytes(), labels.tobytes(),
                                                    wide=data_vectors.wide_of(whole))


def test_training_and_replay(server, run_quern, tmp_path):
    given = ["--data", server.address, "--query", "SELECT y, i2, f4, v FROM t ORDER BY i8"]
    done = run_quern("train", *given, "--test", server.address, "--test-query",
                     "SELECT y, i2, f4, v FROM t WHERE i2 > 3 ORDER BY i8", "--epochs", 1, "--missing", "mean", "--run-dir",
                     tmp_path / "run", "-o", tmp_path / "m")
    assert "identical" in run_quern("replay", tmp_path / "m", *given).stdout
    kept = b"".join(f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())
    assert b"hidden word" not in kept and "hidden" not in done.stdout + done.stderr


@pytest.mark.parametrize("query, what", [
    ("SELECT y, b FROM t ORDER BY i8", 'the column "b" holds bytes (bytea)'),
    ("SELECT y, nope FROM t ORDER BY i8", 'the server says: column "nope" does not exist'),
    ("SELECT y FROM nope ORDER BY y", 'the server says: relation "nope" does not exist'),
    ("SELECT y, 1 / (i2 - 5) FROM t ORDER BY i8", "the server says: division by zero"),
    ("SELECT y, 1e400::numeric FROM t ORDER BY i8", "the value is infinite"),
    ("SELECT y, i2 FROM t WHERE i2 > 100 ORDER BY i8", "the table has no rows"),
    ("WITH x AS (DELETE FROM t RETURNING y) SELECT y, 1 FROM x ORDER BY y", "read-only transaction"),
])
def test_refusals(server, run_quern, query, what):
    told = run_quern("data", "info", server.address, "--query", query, status=None).stderr
    assert what in told and len(told.splitlines()) == 3


def test_passwords(server, run_quern, monkeypatch, tmp_path):
    query = ["--query", "SELECT y, i2 FROM t ORDER BY i8"]
    monkeypatch.setenv("PGPASSWORD", "wrong one")
    told = run_quern("data", "info", server.address, *query, status=1).stderr
    assert "password authentication failed" in told and "~/.pgpass" in told and "wrong one" not in told
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    assert "no password supplied" in run_quern("data", "info", server.address, *query, status=1).stderr
    (tmp_path / "pgpass").write_text("*:*:*:me:hidden word\n")
    (tmp_path / "pgpass").chmod(0o600)
    run_quern("data", "info", server.address, *query)


def test_a_server_that_goes_away(server, quern):
    query = "SELECT y, i2, pg_sleep(0.5)::text FROM t ORDER BY i8"
    child = subprocess.Popen([quern, "data", "info", server.address, "--query", query], text=True,
                             stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if server.psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'quern' "
                       "AND query LIKE '%pg_sleep%' AND query NOT LIKE '%pg_stat%'").strip() == "1":
            break
        time.sleep(0.1)
    server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quern'")
    told = child.communicate(timeout=60)[1]
    assert child.returncode == 1 and "the connection to the server was lost" in told, told


def test_a_server_that_does_not_answer(server, quern):
    """A listener that never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/x?connect_timeout=2"
        done = subprocess.run([quern, "data", "info", address, "--query", "SELECT 1 ORDER BY 1"], text=True,
                              capture_output=True, timeout=60)
    assert done.returncode == 1 and "timeout expired" in done.stderr
