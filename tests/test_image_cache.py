"""Decoded images in the cache folder (docs/images.md, "The cache"): the same data with and without it,
and whatever is wrong with an entry costs time only."""

import io
import json
import os
import pty
import stat
import struct
import subprocess
import tarfile
import time
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

import data_vectors
import machine
from image_files import exif

SIDE = 1024  # five such images are more pixels than the least that is cached


def picture(k):
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    return ((x + k * y) % 251).astype(np.uint8)


def png(k):
    made = io.BytesIO()
    Image.fromarray(picture(k)).save(made, "PNG", compress_level=1)
    return made.getvalue()


def chunk(name, content):
    return (struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content)))


FILES = [f"{'ab'[k % 2]}/{k}.png" for k in range(5)]
ORDER = sorted(range(5), key=lambda k: FILES[k])


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder and an archive with one broken file, old enough that their stamps count."""
    top = tmp_path_factory.mktemp("images")
    content = {name: png(k) for k, name in enumerate(FILES)}
    content["b/x.png"] = content[FILES[0]][:-9]
    for name, data in content.items():
        (top / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (top / "all" / name).write_bytes(data)
    with tarfile.open(top / "all.tar", "w") as archive:
        for name, data in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    for k, name in enumerate(FILES):  # 1 to 5 of Exif
        (top / "turned" / name).parent.mkdir(parents=True, exist_ok=True)
        (top / "turned" / name).write_bytes(content[name][:33] + chunk(b"eXIf", exif(k + 1)) + content[name][33:])
    (top / "turned" / "README").write_text("no image")
    time.sleep(2.1)
    return top


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--skip-broken", "--json").stdout)
    return ask


def entries(cache):
    """Where each entry lies; a new one has another number."""
    return {path.name: path.stat().st_ino for path in cache.iterdir()} if cache.exists() else {}


def digest():
    values = np.stack([picture(k) for k in ORDER])
    labels = np.array(["ab".index(FILES[k][0]) for k in ORDER], "<i4")
    return data_vectors.digest_of(1, 5, SIDE * SIDE, values.tobytes(), labels.tobytes())


@pytest.mark.parametrize("kind", ["all", "all.tar"])
def test_it_is_used(sources, cache, info, kind):
    made = info(sources / kind)
    assert made["digest"] == digest() and made["counts"] == [3, 2]
    assert made["note"] == "1 of 6 files cannot be read and are left out: b/x.png"
    first = entries(cache)
    assert len(first) == 1
    assert info(sources / kind) == made
    assert entries(cache) == first, "it was not decoded again"
    plain = info(sources / kind, "--unlabelled")
    assert plain["target"] == "none" and entries(cache) == first, "labels are not part of an entry"
    small = info(sources / kind, "--resize", "3x4")
    assert len(entries(cache)) == 2
    assert info(sources / kind, "--resize", "3x4") == small
    assert info(sources / kind, "--resize", "3x4", "--no-cache") == small


def test_no_cache(sources, cache, info):
    assert info(sources / "all.tar", "--no-cache")["digest"] == digest()
    assert not cache.exists()


def test_one_model(sources, cache, run_quern, tmp_path):
    for model, *more in ("decoded",), ("cached",), ("plain", "--no-cache"):
        run_quern("train", "--data", sources / "all.tar", "--resize", "9x9", "--skip-broken", "--model",
                  "dense 2 softmax", "--epochs", "2", "--batch", "2", "-o", tmp_path / model, *more)
    models = [(tmp_path / model).read_bytes() for model in ("decoded", "cached", "plain")]
    assert models[0] == models[1] == models[2] and len(entries(cache)) == 1


def test_orientation(sources, cache, run_quern, info, tmp_path):
    """An entry tells that images were turned, and is not used where they are not to be."""
    path, train = sources / "turned", ["--model", "dense 2 softmax", "--resize", "9x9", "--epochs", "1",
                                       "--batch", "5", "--quiet"]
    seen = [np.asarray(ImageOps.exif_transpose(Image.open(path / name))) for name in sorted(FILES)]
    for _ in range(2):
        assert info(path)["note"] == "1 file that is not an image is left out: README"
        assert info(path)["digest"] == data_vectors.digest_of(
            1, 5, SIDE * SIDE, np.stack(seen).tobytes(), np.array([name[0] == "b" for name in sorted(FILES)], "<i4").tobytes())
    for k in range(3):
        run_quern("train", "--data", path, *train, *["--no-cache"] * (k == 0), "-o", tmp_path / f"{k}.m")
        assert (tmp_path / f"{k}.m").read_bytes() == (tmp_path / "0.m").read_bytes()
    assert b"orientation" in (tmp_path / "0.m").read_bytes()
    run_quern("train", "--data", sources / "all", "--skip-broken", *train, "-o", tmp_path / "plain.m")
    for k in range(2):  # then with an entry of its own
        for name, note in ("plain", True), ("0", False):
            told = run_quern("predict", tmp_path / f"{name}.m", "--data", path)
            assert ("4 images have an orientation in Exif that is not applied" in told.stderr) == note
            told = told.stdout, run_quern("predict", tmp_path / f"{name}.m", "--data", path, "--no-cache").stdout
            assert told[0] == told[1]
    assert len(entries(cache)) == 4


def test_changed_images(sources, cache, info, tmp_path):
    """With the size and the time that they had: another pixel is other data."""
    for kind in "all", "all.tar":
        subprocess.run(["cp", "-a", sources / kind, tmp_path / kind], check=True)
    time.sleep(2.1)
    for kind in "all", "all.tar":
        assert info(tmp_path / kind)["digest"] == digest()
        file = tmp_path / kind / FILES[4] if kind == "all" else tmp_path / kind
        old, content = file.stat(), file.read_bytes()
        file.write_bytes(content.replace(png(4), png(3).ljust(len(png(4)), b"\0")))
        os.utime(file, ns=(old.st_atime_ns, old.st_mtime_ns))
        new = file.stat()
        assert (new.st_size, new.st_mtime_ns) == (old.st_size, old.st_mtime_ns)
    first = entries(cache)
    time.sleep(2.1)
    for kind in "all", "all.tar":
        after = info(tmp_path / kind)
        assert after["digest"] != digest() and after == info(tmp_path / kind, "--no-cache")
    second = entries(cache)
    assert first.keys() == second.keys() and all(first[name] != second[name] for name in first)


@pytest.mark.parametrize("place, byte", [("head", 30), ("values", 5000), ("names", -10), ("cut", 0),
                                         ("empty", 0), ("version", 21)])
def test_damage(sources, cache, info, place, byte):
    want = info(sources / "all.tar")
    (name, number), = entries(cache).items()
    content = bytearray((cache / name).read_bytes())
    if place == "cut":
        content = content[:-1]
    elif place == "empty":
        content = b""
    elif place == "version":
        content[byte] -= 1
    else:
        content[byte] ^= 1
    (cache / name).write_bytes(content)
    told = info(sources / "all.tar")
    assert place == "version" or "cached images" in told["note"] and "decoded again" in told["note"]
    assert place != "version" or "cached images" not in told.get("note", "")
    assert told["digest"] == want["digest"] == digest()
    assert entries(cache)[name] != number
    assert info(sources / "all.tar") == want, "it was replaced"


def test_two_at_once(sources, cache, quern):
    runs = [subprocess.Popen([quern, "data", "info", sources / "all", "--skip-broken", "--json"],
                             stdout=subprocess.PIPE) for _ in range(3)]
    told = [json.loads(run.communicate()[0]) for run in runs]
    assert {one["digest"] for one in told} == {digest()}
    assert [name.endswith(".images") for name in entries(cache)] == [True]


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_no_file_in_the_place_of_an_entry(sources, cache, info, kind):
    """What is not a folder is replaced; a folder is not, and the note says what to do."""
    info(sources / "all.tar")
    (name, number), = entries(cache).items()
    (cache / name).unlink()
    if kind == "folder":
        (cache / name / "in").mkdir(parents=True)
    elif kind == "link":
        (cache / name).symlink_to("nothing")
    else:
        os.mkfifo(cache / name)
    told = info(sources / "all.tar")
    assert told["digest"] == digest()
    if kind == "folder":
        assert f"{name}: Is a directory; remove this folder" in told["note"] and "QUERN_CACHE" in told["note"]
    else:
        assert "decoded again" in told["note"] and stat.S_ISREG((cache / name).lstat().st_mode)


def test_no_place(sources, cache, info, quern, tmp_path):
    """A file in place of the folder; a limit below the size of the entry."""
    cache.write_text("")
    told = info(sources / "all.tar")
    assert told["digest"] == digest()
    assert "not cached" in told["note"] and "QUERN_CACHE" in told["note"]
    cache.unlink()
    done = subprocess.run(["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", quern, "data", "info",
                           sources / "all.tar", "--skip-broken", "--json"], capture_output=True, text=True)
    told = json.loads(done.stdout)
    assert told["digest"] == digest() and "not cached" in told["note"]
    assert entries(cache) == {}


def test_space(sources, cache, quern, tmp_path):
    """Entries of 1 MiB on a disk of 6: two stay, and the one that was used last is one of them."""
    machine.need("mounting a disk")
    cache.mkdir()
    script = r"""mount -t tmpfs -o size=6m tmpfs "$QUERN_CACHE"; chmod 700 "$QUERN_CACHE"
    for size in 448 449 448 450 448; do
        "$@" --resize ${size}x${size} >/dev/null; ls -i "$QUERN_CACHE"; echo; done"""
    done = subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", quern, "data", "info",
                           sources / "all.tar", "--skip-broken"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one, two, same, third, last = [set(step.split("\n")) - {""} for step in done.stdout.split("\n\n")[:5]]
    assert len(one) == 1 and len(two) == 2 and two == same and one < two
    assert third == last and one < third and len(third) == 2


def on_terminal(*args):
    """What is said on a terminal, by a program on one core."""
    master, slave = pty.openpty()
    core = min(os.sched_getaffinity(0))
    run = subprocess.Popen(list(map(str, args)), stdout=subprocess.DEVNULL, stderr=slave,
                           preexec_fn=lambda: os.sched_setaffinity(0, {core}),
                           env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    os.close(slave)
    said = b""
    while True:
        try:
            said += (more := os.read(master, 65536))
        except OSError:  # the last writer is gone
            more = b""
        if not more:
            os.close(master)
            assert run.wait() == 0, said
            return said.decode()


def test_the_bar(sources, cache, quern, tmp_path):
    """While images are decoded, and not where they are mapped; gone after them."""
    (tmp_path / "many").mkdir()
    (tmp_path / "one.png").write_bytes(png(1))
    for k in range(600):  # about a second, and a bar takes an eighth to appear
        os.link(tmp_path / "one.png", tmp_path / "many" / f"{k}.png")
    time.sleep(2.1)
    job = [quern, "data", "info", tmp_path / "many", "--resize", "9x9"]
    said = on_terminal(*job)
    assert "decoding " in said and "/600" in said and said.endswith("\r\033[K")
    assert on_terminal(*job) == ""
