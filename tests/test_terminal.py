"""Texts from files on a terminal: names, notes and records cannot give it orders."""

import os
import pty
import sqlite3
import subprocess

import pytest

# A title, colours by C1, text from right to left, DEL, a next line (C1), and half of a character.
ORDERS = "\x1b]0;title\x07\x9b31m\u202eabc\u2066\u2028\x7f\x85"
LABEL = "kind" + ORDERS


@pytest.fixture(scope="module")
def made(run_quern, tmp_path_factory):
    """A table with such names, a model of it, and a file of runs that somebody has changed."""
    d = tmp_path_factory.mktemp("orders")
    rows = "".join(f'{i % 7},{i % 5},"{"ab"[i % 2]}{ORDERS}"\n' for i in range(60))
    (d / "t.csv").write_text(f'"x{ORDERS}",y,"{LABEL}"\n{rows}')
    run_quern("train", "--data", "t.csv", "--label", LABEL, "--epochs", 1, "-o", "m", "--runs", "runs", "--run-name",
              "n" + ORDERS, "--quiet", cwd=d)
    with sqlite3.connect(d / "runs") as runs:
        runs.execute("UPDATE runs SET state = ?, started = ?", ("running" + ORDERS, "now" + ORDERS))
    runs.close()
    return d


def on_a_terminal(quern, folder, *args):
    """What a command shows there, of both streams, and its exit code."""
    own, its = pty.openpty()
    process = subprocess.Popen([quern, *map(str, args)], stdout=its, stderr=its, stdin=subprocess.DEVNULL, cwd=folder,
                               env={**os.environ, "TERM": "dumb"})
    os.close(its)
    shown = b""
    try:
        while block := os.read(own, 65536):
            shown += block
    except OSError:
        pass  # that is the end of a terminal
    os.close(own)
    return process.wait(timeout=60), shown.replace(b"\r\n", b"\n")


def orders_in(shown):
    text = shown.decode()  # nothing that is not UTF-8
    return [c for c in text if c not in "\n\t" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c in "\u061c\u200e\u200f\u2028"
                                                   "\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")]


COMMANDS = [
    ["predict", "m", "--data", "t.csv"], ["evaluate", "m", "--data", "t.csv"],
    ["evaluate", "m", "--data", "t.csv", "--json"], ["data", "info", "t.csv", "--label", LABEL],
    ["data", "info", "t.csv", "--label", LABEL, "--json"], ["data", "head", "t.csv"],
    ["data", "stats", "t.csv", "--label", LABEL, "--by-class"], ["runs", "list", "--runs", "runs"],
    ["runs", "show", "n" + ORDERS, "--runs", "runs"], ["runs", "compare", *["n" + ORDERS] * 2, "--runs", "runs"],
    ["train", "--data", "t.csv", "--label", LABEL, "--test", "t.csv", "--epochs", 1, "-o", "m" + ORDERS],
    ["replay", "m", "--data", "t.csv", "-o", "again" + ORDERS], ["train", "--data", "no" + ORDERS, "-o", "x"]]


def test_a_terminal_gets_no_orders(quern, made):
    for args in COMMANDS:
        code, shown = on_a_terminal(quern, made, *args)
        assert code == (1 if "x" in args else 0), (args, shown)
        assert b"?" in shown and not orders_in(shown), (args, shown)


def test_names_in_whole_characters_stay(quern, tmp_path):
    """Blocks of the stream end within characters; what is not UTF-8 is not a character."""
    names = ["é" * 9 + "日本" * i + "𝄞" for i in range(40)]
    (tmp_path / "t.csv").write_text("x,kind\n" + "".join(f"{i % 9},{names[i % 40]}\n" for i in range(4000)))
    subprocess.run([quern, "train", "--data", "t.csv", "--label", "kind", "--epochs", "1", "-o", "m", "--quiet"],
                   cwd=tmp_path, check=True, capture_output=True)
    piped = subprocess.run([quern, "predict", "m", "--data", "t.csv"], cwd=tmp_path, check=True, capture_output=True)
    code, shown = on_a_terminal(quern, tmp_path, "predict", "m", "--data", "t.csv", "--quiet")
    assert code == 0 and shown == piped.stdout and len(shown) > 100_000
    code, shown = on_a_terminal(quern, tmp_path, "train", "--data", b"\xff\xc3\x9b\xe2\x80.csv".decode(errors="surrogateescape"), "-o", "x")
    assert code == 1 and not orders_in(shown)


def test_files_and_pipes_get_the_names_as_they_are(run_quern, made):
    told = run_quern("predict", "m", "--data", "t.csv", cwd=made).stdout
    assert f'"a{ORDERS}"' in told
