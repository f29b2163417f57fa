"""quern watch: files and rows that are answered as they come, each once."""

import collections
import contextlib
import csv
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import zlib

import numpy as np
import pytest

import store_server
from launch import APART
from machine import LONG, PATIENCE, need
from test_predict_database import password, server  # noqa: F401  (fixtures)


def picture(seed):
    """A BMP file of 4 x 4 pixels."""
    pixels = random.Random(seed).randbytes(48)
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 102, 0, 54, 40, 4, 4, 1, 24, 0, 48, 0, 0, 0, 0) + pixels


def grey(height, width, pixels):
    """A PNG file of one channel."""
    rows = b"".join(b"\0" + bytes(list(pixels)[r * width:(r + 1) * width]) for r in range(height))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def put(folder, name, content):
    (folder / ".new").write_bytes(content)
    (folder / ".new").rename(folder / name)


@pytest.fixture(scope="module")
def models(run_quern, tmp_path_factory):
    """Of pictures, and of rows; and what they give for the files and rows of the tests."""
    folder = tmp_path_factory.mktemp("watched")
    for k in range(12):
        (folder / "train" / "ab"[k % 2]).mkdir(parents=True, exist_ok=True)
        (folder / "train" / "ab"[k % 2] / f"{k}.bmp").write_bytes(picture(k))
    run_quern("train", "--data", folder / "train", "--model", "dense 2 softmax", "--epochs", 1, "--quiet", "-o", folder / "p.safetensors")
    (folder / "t.csv").write_text("label,x,y\n" + "".join(f"{'no' if k % 3 else 'yes'},{k},{k * k % 7}\n" for k in range(30)))
    run_quern("train", "--data", folder / "t.csv", "--model", "dense 2 softmax", "--epochs", 1, "--quiet", "-o", folder / "r.safetensors")
    (folder / "n.csv").write_text("".join(f"{k % 2},{k},{k * k % 7}\n" for k in range(30)))
    run_quern("train", "--data", folder / "n.csv", "--label", 1, "--model", "dense 2 softmax", "--epochs", 1, "--quiet", "-o", folder / "n.safetensors")
    return folder


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def predicted(run_quern, model, data, *more):
    said = run_quern("predict", model, "--data", data, "--unlabelled", "-o", "-", "--quiet", *more).stdout
    return [(row.get("file"), row["prediction"], row["score"]) for row in csv.DictReader(said.splitlines())]


def test_files_once_each_across_kills(quern, run_quern, models, tmp_path):
    """A watch is killed as soon as some rows are there, while files come. All have one row at the end, with the bits of predict."""
    here, done, out = tmp_path / "in", tmp_path / "done", tmp_path / "r.csv"
    here.mkdir(), done.mkdir()
    names = [f"{k}.bmp" for k in range(60)]
    command = [quern, "watch", here, "--model", models / "p.safetensors", "-o", out, "--move-done", done, "--quiet", "--threads", "1"]
    for kill in range(3):
        for name in names[kill * 15:kill * 15 + 10]:
            put(here, name, picture(name))
        with subprocess.Popen(command) as watch:
            for name in names[kill * 15 + 10:kill * 15 + 15]:
                put(here, name, picture(name))
            while not out.exists() or out.read_bytes().count(b"\n") < 8 + kill * 15:
                assert watch.poll() is None
            watch.kill()
    with open(out, "a") as torn:
        torn.write("59.bmp,0,a,0.")  # what a write that was cut off has left
    for name in names[45:]:
        put(here, name, picture(name))
    put(here, "broken.bmp", b"BM")
    unfinished = ["half.tmp", "one.bmp._COPYING_", "results.db-journal", "results.db-wal", "two.bmp~"]
    for name in unfinished:
        put(here, name, picture(1))
    old = os.stat(here / "broken.bmp").st_mtime - 60
    os.utime(here / "broken.bmp", (old, old))
    run_quern(*command[1:], "--once")
    rows = rows_of(out)
    assert collections.Counter(row["file"] for row in rows) == {name: 1 for name in names + ["broken.bmp"]}
    assert [row["error"] != "" for row in rows] == [row["file"] == "broken.bmp" for row in rows]
    assert sorted(os.listdir(here)) == unfinished and len(os.listdir(done)) == 61
    (done / "broken.bmp").unlink()
    assert sorted(predicted(run_quern, models / "p.safetensors", done)) == sorted(
        (row["file"], row["prediction"], row["score"]) for row in rows if not row["error"])
    before = out.read_bytes()
    put(here, "5.bmp", picture(99))  # a name is answered once
    assert "0 answers" in run_quern(*[word for word in command[1:] if word != "--quiet"], "--once", "--poll").stdout
    assert out.read_bytes() == before and (done / "5.bmp~1").read_bytes() == picture(99)


FEW_WATCHES = [*APART, "sh", "-c", 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"', "-"]


@pytest.mark.parametrize("how", ["told", "limited", "polled"])
def test_folders_in_folders(quern, run_quern, models, tmp_path, how):
    """Trees that come whole or grow, links, odd names, a folder that gets another name."""
    here, far, out = tmp_path / "in", tmp_path / "far", tmp_path / "r.csv"
    want = {}

    def put_at(path, seed, key=None):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(seed))
        want[key or str(path.relative_to(here))] = seed

    put_at(here / "a" / "b" / "0.bmp", 0)
    for name in ".git", "half.part":
        (here / name).mkdir()
        (here / name / "x.bmp").write_bytes(picture(1))
    far.mkdir()
    (far / "1.bmp").write_bytes(picture(1))
    (here / "far").symlink_to(far)
    (here / "a" / "loop").symlink_to(here)
    (here / "to nothing.bmp").symlink_to("nothing")
    want["far/1.bmp"] = 1
    command = [quern, "watch", here, "--model", models / "p.safetensors", "-o", out]
    if how == "limited":
        need("user namespaces")
        if subprocess.run([*FEW_WATCHES, "true"], stderr=subprocess.DEVNULL).returncode:
            pytest.skip("a user may not limit the number of watches here")
        command = FEW_WATCHES + command
    command += ["--poll"] * (how == "polled") + ["--poll-every", "0.05s"] * (how != "told")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
        watch.stderr.readline()
        wait_for(out, len(want), watch)
        put_at(here / "c" / "d" / "e" / "2.bmp", 2)
        for seed, inside in (3, ""), (4, "f/g"):
            put_at(tmp_path / "tree" / inside / f"{seed}.bmp", seed, os.path.normpath(f"c/tree/{inside}/{seed}.bmp"))
        (tmp_path / "tree").rename(here / "c" / "tree")
        wait_for(out, len(want), watch)
        (here / "a" / "b").rename(here / "a" / "z")  # what it has is answered, and what comes is not
        put_at(here / "a" / "z" / "5.bmp", 5)
        put_at(here / "c" / 'two\n"lines".bmp', 6)
        put_at(here / "c" / os.fsdecode(b"\xff\xc3\xa4.bmp"), 7, "c/\\xff\u00e4.bmp")
        put_at(here / "c" / "\\xff\u00e4.bmp", 8, "c/\\x5cxff\u00e4.bmp")
        put_at(tmp_path / "9.bmp", 9, "c/d/link.bmp")
        (here / "c" / "d" / "link.bmp").symlink_to(tmp_path / "9.bmp")
        os.link(tmp_path / "9.bmp", here / "c" / "hard.bmp")
        want["c/hard.bmp"] = 9
        put_at(far / "10.bmp", 10, "far/10.bmp")
        wait_for(out, len(want), watch)
        watch.send_signal(signal.SIGTERM)
        said = watch.stderr.read().decode()
    assert watch.returncode == 0 and ("fs.inotify.max_user_watches" in said) == (how == "limited")
    (tmp_path / "all").mkdir()
    for seed in range(11):
        (tmp_path / "all" / f"{seed:02}.bmp").write_bytes(picture(seed))
    good = predicted(run_quern, models / "p.safetensors", tmp_path / "all")
    assert sorted((row["file"], row["prediction"], row["score"]) for row in rows_of(out)) == sorted(
        (name, *good[seed][1:]) for name, seed in want.items())


def test_names_that_come_again_and_deep_folders(quern, models, tmp_path):
    """Both are told. A new file under a name that is done has no answer; a folder in more than 32 others is not looked at."""
    here, out = tmp_path / "in", tmp_path / "r.csv"
    deep = [os.path.join(*["d"] * depth) for depth in (31, 32, 33)]
    (here / deep[2]).mkdir(parents=True)
    for folder in deep:
        (here / folder / "x.bmp").write_bytes(picture(1))
    put(here, "a.bmp", picture(2))
    with subprocess.Popen([quern, "watch", here, "--model", models / "p.safetensors", "-o", out], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stderr.readline() == f"watching {here}\n"
        said = watch.stderr.readline()
        wait_for(out, 3, watch)
        put(here, "a.bmp", picture(3))
        again = watch.stderr.readline()
        put(here, "b.bmp", picture(3))
        wait_for(out, 4, watch)
        watch.terminate()
    assert said == f"{deep[2]}: the folder is nested too deeply, and not looked at\n"
    assert again == "a.bmp came again, and is answered already: each file needs a name of its own\n"
    assert sorted(row["file"] for row in rows_of(out)) == ["a.bmp", "b.bmp", *sorted(f"{folder}/x.bmp" for folder in deep[:2])]


def test_a_file_to_be_read_again_while_others_are_looked_at(run_quern, models, tmp_path):
    """A new file that cannot be read is tried again, also if that is known before the look at a large folder ends."""
    folder, out = tmp_path / "in", tmp_path / "r.csv"
    (folder / "many").mkdir(parents=True)
    for k in range(2000):
        (folder / "many" / f"{k}.bin").write_bytes(b"dog")
    words = ["watch", folder, "--model", models / "p.safetensors", "-o", out, "--once", "--latency", "1ms"]
    run_quern(*words)
    for k in range(3):
        (folder / f"late{k}.bin").write_bytes(b"cat")
        run_quern(*words)
        assert [row["file"] for row in rows_of(out)[2000:]] == [f"late{i}.bin" for i in range(k + 1)]


def test_done_files_keep_their_folders(run_quern, models, tmp_path):
    """They go into a folder inside the watched one, where the table is, too; or to another file system."""
    here = tmp_path / "in"
    command = ["watch", here, "--model", models / "p.safetensors", "-o", here / "r.csv", "--poll", "--once", "--poll-every", "0.01s"]
    (here / "a" / "b").mkdir(parents=True), (here / "done").mkdir()
    for k, name in enumerate(["x.bmp", "a/x.bmp", "a/b/x.bmp"]):
        (here / name).write_bytes(picture(k))
    assert "1 answer in" in run_quern(*command, "--flat").stdout
    for count in "2 answers", "0 answers":
        assert count in run_quern(*command, "--move-done", here / "done").stdout
    assert [(here / "done" / name).read_bytes() for name in ("x.bmp", "a/x.bmp", "a/b/x.bmp")] == [picture(k) for k in range(3)]
    others = [path for path in ("/dev/shm", "/var/tmp", ".") if os.access(path, os.W_OK) and os.stat(path).st_dev != here.stat().st_dev]
    if not others:
        pytest.skip("there is not a second file system")
    with tempfile.TemporaryDirectory(dir=others[0]) as other:
        run_quern(*command, "--move-done", other)
        moved = [f"{other}/done/{name}" for name in ("x.bmp", "a/x.bmp", "a/b/x.bmp")]
        assert [open(path, "rb").read() for path in moved] == [picture(k) for k in range(3)]
    assert sorted(path.name for path in here.rglob("*") if path.is_file()) == ["r.csv"]


def table_of(path):
    """The rows of a CSV file or a SQLite database; none while it is not there."""
    if not path.exists():
        return []
    if path.suffix == ".csv":
        return rows_of(path)
    with sqlite3.connect(path) as base:
        base.row_factory = sqlite3.Row
        try:
            return list(map(dict, base.execute("SELECT * FROM predictions")))
        except sqlite3.OperationalError:  # the table is not there yet
            return []


def wait_for(out, rows, watch, look=table_of):
    end = time.monotonic() + 30 * PATIENCE
    while len(look(out)) < rows:
        if watch.poll() is not None or time.monotonic() > end:
            watch.kill()  # else the end of `with Popen` would wait for it
            pytest.fail(f"{len(look(out))} rows in the place of {rows}; exit code {watch.poll()}")


@pytest.mark.parametrize("kind", ["csv", "db"])
def test_a_folder_of_a_store(quern, run_quern, models, tmp_path, kind):
    """Each version of an object has one row, although the store fails and the watch is killed."""
    out, want = tmp_path / f"r.{kind}", set()
    with store_server.S3() as s3:
        s3.page = 3
        env = {**os.environ, **s3.environment, "QUERN_STORE_PAUSE_MS": "0", "QUERN_CACHE": str(tmp_path / "cache"),
               "QUERN_STORE_STALL": "3000"}

        def add(name, content):
            s3.put(f"b/cam/{name}", content)
            want.add((name, hashlib.md5(content).hexdigest()))

        for k in range(7):
            add(f"{k} ä+.bmp" if k % 2 else f"day/{k}.bmp", picture(k))
        for name in "cam/.hidden/1.bmp", "cam/1.tmp", "cam/", "camera/1.bmp":
            s3.put(f"b/{name}", picture(1) * (name != "cam/"))
        add("broken.bmp", b"BM")
        command = [quern, "watch", "s3://b/cam", "--model", models / "p.safetensors", "-o",
                   out if kind == "csv" else f"sqlite:{out}", "--poll-every", "0.05s", "--threads", "1"]
        s3.fault("status", status=503, method="GET", key="day/0", times=3)
        s3.fault("do", method="GET", key="day/2", action=lambda: add("day/2.bmp", picture(12)))  # after it was listed
        want.discard(("day/2.bmp", hashlib.md5(picture(2)).hexdigest()))
        for end in signal.SIGKILL, signal.SIGTERM:
            with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
                for line in watch.stderr:
                    if line.startswith(b"watching"):
                        break
                wait_for(out, 3 if end == signal.SIGKILL else len(want), watch)
                if end == signal.SIGTERM:
                    s3.fault("status", status=404, method="GET", query=("list-type",), body=b"x")
                    s3.put("b/cam/gone.bmp", picture(3))
                    s3.fault("do", method="GET", key="gone", action=lambda: s3.buckets["b"].pop("cam/gone.bmp", None))
                    add("day/0.bmp", picture(20))
                    add("day/4.bmp", picture(24))
                    wait_for(out, len(want), watch)
                    s3.fault("hold", method="GET", query=("list-type",), times=9)
                    assert s3.held.wait(60)  # the answer comes after the watch has ended
                watch.send_signal(end)
                said = watch.stderr.read().decode()
            assert watch.returncode == (-end if end == signal.SIGKILL else 0), said
            assert ("is asked again" in said) == (end == signal.SIGTERM)
        s3.forget()
        s3.release()
        assert "0 answers" in run_quern(*command[1:], "--once", env=env).stdout
        rows = table_of(out)
        assert collections.Counter((row["file"], row["version"]) for row in rows) == dict.fromkeys(want, 1)
        assert [row["file"] for row in rows if row["error"]] == ["broken.bmp"]
        (tmp_path / "all").mkdir()
        for row in rows:
            if not row["error"]:
                seed = next(k for k in range(30) if hashlib.md5(picture(k)).hexdigest() == row["version"])
                (tmp_path / "all" / f"{seed:02}.bmp").write_bytes(picture(seed))
        assert sorted(float(np.float32(row["score"])) for row in rows if not row["error"]) == sorted(
            float(np.float32(score)) for _, _, score in predicted(run_quern, models / "p.safetensors", tmp_path / "all"))
        options = command[3:]
        for what, more, told in [("s3://b/camera/1.bmp", (), "further files of a folder"), (f"{s3.address}/b/cam/", (), "does not list its files"),
                                 ("s3://b/cam/", ("--move-done", tmp_path), "objects of a store are not moved"), ("s3://none/", (), "there is no such bucket")]:
            assert told in run_quern("watch", what, *options, *more, "--once", env=env, status=None).stderr
        assert "a store takes whole files" in run_quern("watch", tmp_path, *options[:3], "s3://b/r.csv", env=env, status=None).stderr


@pytest.mark.parametrize("kind", ["csv", "db"])
def test_a_full_disk(quern, models, tmp_path, kind):
    """Answers wait until there is space again. A watch that is killed meanwhile loses none of them."""
    need("mounting a disk")
    disk, here = tmp_path / "disk", tmp_path / "in"
    disk.mkdir(), here.mkdir()
    to = f"{disk}/r.{kind}" if kind == "csv" else f"sqlite:{disk}/r.{kind}"
    command = ["unshare", "--mount", "sh", "-ec", f"mount -t tmpfs -o size=128k tmpfs {disk}; echo; exec cat"]
    watch_it = [quern, "watch", here, "--model", models / "p.safetensors", "-o", to, "--threads", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        seen = tmp_path.__class__(f"/proc/{keeper.pid}/root{disk}")
        keeper.stdout.readline()
        inside = ["nsenter", "-t", str(keeper.pid), "-m", "--"]

        def look(path):
            """Rows of a copy: SQLite does not find the way into another namespace."""
            if not path.exists():
                return []
            try:
                return table_of(tmp_path.__class__(shutil.copy(path, tmp_path)))
            except sqlite3.DatabaseError:
                return []

        names = [f"{k:03}{'long' * 50}.bmp" for k in range(120)]
        put(here, names[0], picture(0))
        for finish in signal.SIGKILL, signal.SIGTERM:
            with subprocess.Popen(inside + watch_it, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
                watch.stderr.readline()
                if finish == signal.SIGKILL:
                    wait_for(seen / f"r.{kind}", 1, watch, look)
                    with open(seen / "fill", "wb", buffering=0) as fill, pytest.raises(OSError):
                        while True:
                            fill.write(bytes(512))
                    for k, name in enumerate(names[1:], 1):
                        put(here, name, picture(k))
                line = watch.stderr.readline()
                assert b"answers cannot be stored, and wait" in line
                if finish == signal.SIGTERM:
                    (seen / "fill").unlink()
                    wait_for(seen / f"r.{kind}", len(names), watch, look)
                watch.send_signal(finish)
        rows = look(seen / f"r.{kind}")
    assert watch.returncode == 0 and collections.Counter(row["file"] for row in rows) == dict.fromkeys(names, 1)


def test_a_locked_database(quern, models, tmp_path):
    """Another program has a transaction that takes long: when the watch begins, and later."""
    here, out = tmp_path / "in", tmp_path / "r.db"
    here.mkdir()
    command = [quern, "watch", here, "--model", models / "p.safetensors", "-o", f"sqlite:{out}"]
    other = sqlite3.connect(out, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
        files, opened = f"/proc/{watch.pid}/fd", False
        while not opened:
            assert watch.poll() is None
            with contextlib.suppress(FileNotFoundError):
                opened = any(os.path.samefile(os.path.join(files, name), out) for name in os.listdir(files))
        other.execute("COMMIT")
        assert b"watching" in watch.stderr.readline()
        other.execute("BEGIN EXCLUSIVE")
        put(here, "1.bmp", picture(1))
        assert b"wait" in watch.stderr.readline()
        other.execute("COMMIT")
        other.close()
        wait_for(out, 1, watch)
        watch.send_signal(signal.SIGTERM)
    assert watch.returncode == 0 and [row["file"] for row in table_of(out)] == ["1.bmp"]


def test_a_table_that_is_gone(quern, run_quern, models, tmp_path):
    """Rows for a file that was removed would be lost, and a pipe that nobody reads takes none."""
    here, out = tmp_path / "in", tmp_path / "r.csv"
    here.mkdir()
    command = [quern, "watch", here, "--model", models / "p.safetensors", "-o"]
    with subprocess.Popen([*command, out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
        watch.stderr.readline()
        out.unlink()
        put(here, "1.bmp", picture(1))
        assert b"the file was removed" in watch.stderr.read()
    assert watch.returncode == 1
    with subprocess.Popen([*command, "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        watch.stdout.readline()
        watch.stdout.close()
        put(here, "2.bmp", picture(2))
        assert b"nobody reads" in watch.stderr.read()
    assert watch.returncode == 1


def test_masks(run_quern, tmp_path):
    """The PNG files of quern predict, each stored before its row; also of a photograph of another size."""
    here, out, masks = tmp_path / "in", tmp_path / "r.csv", tmp_path / "in" / "masks"
    for k in range(4):
        for folder, content in ("photos", picture(k)), ("in/a", picture(k)), ("drawn", grey(4, 4, [j > k + 4 for j in range(16)])):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / f"{k}.{'png' if folder == 'drawn' else 'bmp'}").write_bytes(content)
    run_quern("train", "--data", tmp_path / "photos", "--masks", tmp_path / "drawn", "--model", "conv 2 1x1 softmax", "--epochs", 1,
              "--resize", "4x4", "--quiet", "-o", tmp_path / "m")
    for folder in "photos", "in/a":
        (tmp_path / folder / "large.png").write_bytes(grey(9, 7, [j * 4 for j in range(63)]))
    (here / "broken.bmp").write_bytes(b"BM")
    os.utime(here / "broken.bmp", (0, 0))
    masks.mkdir()
    (masks / "mine.png.png").write_bytes((tmp_path / "drawn" / "0.png").read_bytes())
    (here / "mine.png").write_bytes(grey(4, 4, range(16)))
    command = ["watch", here, "--model", tmp_path / "m", "-o", out, "--once"]
    assert "name a folder for them" in run_quern(*command, status=2).stderr
    assert "where a mask is a new file" in run_quern(*command, "--masks", here, status=2).stderr
    run_quern(*command, "--masks", masks)
    run_quern("predict", tmp_path / "m", "--data", tmp_path / "photos", "-o", tmp_path / "predicted")
    rows = {row["file"]: row for row in rows_of(out)}
    assert {name: row["mask"] for name, row in rows.items() if not row["error"]} == {
        f"a/{name}": f"a/{name}.png" for name in ["0.bmp", "1.bmp", "2.bmp", "3.bmp", "large.png"]}
    assert "did not write" in rows["mine.png"]["error"] and rows["broken.bmp"]["error"]
    for name in "0.bmp", "3.bmp", "large.png":
        assert (masks / "a" / f"{name}.png").read_bytes() == (tmp_path / "predicted" / name).with_suffix(".png").read_bytes()
    (masks / "a" / "0.bmp.png").unlink()
    out.write_text("".join(line for line in out.read_text().splitlines(True) if not line.startswith("a/0.bmp")))
    assert "1 answer in" in run_quern(*command, "--masks", masks).stdout and (masks / "a" / "0.bmp.png").exists()


@LONG
@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_restarts(server, password, quern, models, tmp_path, seed):
    """Its connections are cut, it is stopped for a while, and the watch is killed, all at random moments."""
    here, names, random_ = tmp_path / "in", [], random.Random(seed)
    here.mkdir()
    command = [quern, "watch", here, "--model", models / "p.safetensors", "-o", f"{server.address}?table=w{seed}", "--threads", "1"]
    with contextlib.ExitStack() as stack:
        start = lambda: stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        watch = start()
        for k in range(400):
            names.append(f"{k}.bmp")
            put(here, names[-1], picture(k))
            what = random_.random()
            if what < 0.01:
                server.stop()
                server.start()
            elif what < 0.03:
                server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
            elif what < 0.06:
                watch.kill()
                watch.wait()
            if watch.poll() is not None:  # also one that found no server when it began
                watch = start()
        end = time.monotonic() + 60 * PATIENCE
        while not server.psql(f"SELECT to_regclass('w{seed}')").strip() or \
                server.psql(f"SELECT count(*) FROM w{seed}").strip() != "400":
            assert time.monotonic() < end
            watch = start() if watch.poll() else watch
        watch.send_signal(signal.SIGTERM)
        assert watch.wait() == 0
    assert server.psql(f"SELECT count(*), count(DISTINCT file) FROM w{seed} WHERE error IS NULL").strip() == "400|400"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_that_are_appended(quern, run_quern, models, tmp_path, kind):
    path, out = tmp_path / f"rows.{kind}", tmp_path / "r.csv"
    line = "{},{}\n".format if kind == "csv" else '{{"y":{1},"x":{0}}}\n'.format
    half, rest, wrong = line(5, 1)[:2], line(5, 1)[2:] + '{"x":[1],"y":2}\n', 6
    if kind == "csv":  # a quote is open
        half, rest, wrong = '"5\n', '\n5",1\n6,1\n', 5
    with open(path, "w") as file:
        file.write("x,y\n" * (kind == "csv") + "".join(line(k, 1) for k in range(5)) + half)
    command = [quern, "watch", path, "--model", models / "r.safetensors", "-o", out]
    for end in signal.SIGKILL, signal.SIGTERM:
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
            assert watch.stderr.readline() == f"watching {path}\n".encode()  # from now on it hears a signal
            while not out.exists() or out.read_bytes().count(b"\n") <= (5 if end == signal.SIGKILL else 8):
                assert watch.poll() is None
            if end == signal.SIGKILL:
                with open(path, "a") as file:  # the rest of a row, two more; one of the three is wrong
                    file.write(rest + line(7, 1))
            watch.send_signal(end)
        assert watch.returncode == (-end if end == signal.SIGKILL else 0)
    rows = rows_of(out)
    assert [row["item"] for row in rows] == list(map(str, range(8)))
    assert [k for k, row in enumerate(rows) if row["error"]] == [wrong]
    (tmp_path / "good.csv").write_text("x,y\n" + "".join(f"{k},1\n" for k in range(8) if k != wrong))
    good = predicted(run_quern, models / "r.safetensors", tmp_path / "good.csv")
    assert [(None, row["prediction"], row["score"]) for row in rows if not row["error"]] == good
    if kind == "csv":  # a model without names sees the same rows: the next one is answered by the right model
        run_quern("watch", path, "--model", models / "n.safetensors", "-o", out, "--once")
        with open(path, "a") as file:
            file.write(line(8, 1))
        assert "1 answer in" in run_quern(*command[1:], "--once").stdout and not rows_of(out)[8]["error"]
    path.write_text("x,y\n1,2\n" if kind == "csv" else line(1, 2))
    said = run_quern(*command[1:], "--once", status=1).stderr
    assert "fewer rows" in said and "name another table" in said


def test_tags(run_quern, tmp_path):
    """Of texts in rows and in a folder: those of quern predict."""
    texts = ["ab c", '"c\nab"', "a b c", "ab"] * 70  # more than one batch of rows
    (tmp_path / "t.csv").write_text("text,tags\n" + "ab c,X Y\n\"c\nab\",Y X\n" * 4)
    run_quern("train", "--data", tmp_path / "t.csv", "--label", "tags", "--tokens", "chars", "--context", 6, "--model",
              "embedding 256 4; conv 2 1x1 softmax", "--epochs", 3, "--quiet", "-o", tmp_path / "m")
    (tmp_path / "in").mkdir()
    for path in "n.csv", "in/n.csv":
        (tmp_path / path).write_text("text\n" + "".join(f"{text}\n" for text in texts))
    run_quern("predict", tmp_path / "m", "--data", tmp_path / "n.csv", "--unlabelled", "-o", tmp_path / "p.csv", "--quiet")
    good = [row["prediction"] for row in rows_of(tmp_path / "p.csv")]
    for what in "n.csv", "in":
        run_quern("watch", tmp_path / what, "--model", tmp_path / "m", "-o", tmp_path / f"{what}.out", "--once")
        rows = rows_of(tmp_path / f"{what}.out")
        assert [row["prediction"] for row in rows] == good and len(good) == len(texts)


def test_outputs_of_a_layer(run_quern, models, tmp_path):
    """Of pictures and rows, those of quern predict, once each; in a database, too."""
    here, out = tmp_path / "in", tmp_path / "r.csv"
    here.mkdir()
    for k in range(3):
        put(here, f"{k}.bmp", picture(k))
    command = ["watch", here, "--model", models / "p.safetensors", "--layer", "-1", "-o", out, "--once"]
    assert "3 answers" in run_quern(*command).stdout and "0 answers" in run_quern(*command).stdout
    run_quern("predict", models / "p.safetensors", "--data", here, "--unlabelled", "--layer", "-1", "-o", tmp_path / "p.csv", "--quiet")
    assert [(row["f0"], row["f1"]) for row in sorted(rows_of(out), key=lambda row: row["file"])] == [
        (row["f0"], row["f1"]) for row in rows_of(tmp_path / "p.csv")]
    (tmp_path / "n.csv").write_text("x,y\n1,2\n3,zz\n5,6\n")
    run_quern("watch", tmp_path / "n.csv", "--model", models / "r.safetensors", "--layer", "0", "-o", f"sqlite:{tmp_path / 'r.db'}", "--once")
    with sqlite3.connect(tmp_path / "r.db") as base:
        rows = base.execute("SELECT item, f0, f1, error FROM outputs ORDER BY item").fetchall()
    (tmp_path / "g.csv").write_text("x,y\n1,2\n5,6\n")
    run_quern("predict", models / "r.safetensors", "--data", tmp_path / "g.csv", "--unlabelled", "--layer", "0", "-o", tmp_path / "g.out.csv", "--quiet")
    assert [tuple(map(np.float32, row[1:3])) for row in rows if not row[3]] == [
        tuple(map(np.float32, row.values())) for row in rows_of(tmp_path / "g.out.csv")] and [bool(row[3]) for row in rows] == [False, True, False]
    for wrong, what in ((["--pool", "mean"], "name the layer with --layer"), (["--layer", "0", "--outputs"], "leave one of both out"),
                        (["--layer", "9"], "has the layers 0 to 0"), (["--layer", "0", "--pool", "sum"], "--pool cannot be \"sum\"")):
        assert what in run_quern("watch", here, "--model", models / "r.safetensors", "-o", tmp_path / "w.csv", "--once", *wrong, status=None).stderr
    assert not (tmp_path / "w.csv").exists()


def test_standard_input(run_quern, models, tmp_path):
    (tmp_path / "a.bmp").write_bytes(picture(1))
    said = run_quern("watch", "-", "--model", models / "p.safetensors", "-o", "-", "--quiet", input=f"{tmp_path}/a.bmp\n{tmp_path}/b.bmp").stdout
    rows = list(csv.DictReader(said.splitlines()))
    assert [row["file"] for row in rows] == [f"{tmp_path}/a.bmp", f"{tmp_path}/b.bmp"]
    assert rows[0]["prediction"] in "ab" and rows[1]["error"] == "there is no such file"
    said = run_quern("watch", "-", "--model", models / "r.safetensors", "-o", "-", "--quiet", input="x,y\n1,2\n\n3,4").stdout
    assert [row["item"] for row in csv.DictReader(said.splitlines())] == ["0", "1"]
    # a quote that is closed in another line, which numbers do not have, and one that nobody closes
    said = run_quern("watch", "-", "--model", models / "r.safetensors", "-o", "-", "--quiet",
                     input='x,y\n1,2\n"3\n\n",4\n"3,4\n5,6' + " " * 2**20 + "\n7,8\n").stdout
    assert [(row["item"], row["error"] != "") for row in csv.DictReader(said.splitlines())] == [
        ("0", False), ("1", True), ("2", True), ("3", False), ("4", False)]


def test_what_is_refused(run_quern, models, tmp_path):
    model = ("--model", models / "r.safetensors")
    assert "--model FILE is required" in run_quern("watch", tmp_path, status=2).stderr
    for option in "--latency", "--poll-every":
        assert f'{option} is "20x", which is not a time' in run_quern("watch", tmp_path, *model, "-o", "r.csv", option, "20x", status=2).stderr
    assert "it is the folder that is watched" in run_quern("watch", tmp_path, *model, "-o", tmp_path / "r.csv", "--move-done", tmp_path, status=2).stderr
    (tmp_path / "list.json").write_text("[{}]")
    assert "not one row a line" in run_quern("watch", tmp_path / "list.json", *model, "-o", tmp_path / "r.csv", "--once", status=1).stderr
    (tmp_path / "rows.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00")
    assert "this is not a text" in run_quern("watch", tmp_path / "rows.npy", *model, "-o", tmp_path / "r.csv", "--once", status=1).stderr
    assert "cannot open" in run_quern("watch", tmp_path / "none", *model, "-o", tmp_path / "r.csv", status=1).stderr
