"""Files that kernels of users write: pictures, raw numbers, and outputs that are larger than memory."""

import hashlib
import json
import resource
import struct
import subprocess
import zlib

import numpy
import pytest

import machine
from test_bad_launch import full_disk

from test_kernel import HEAD, cache, quick, results, run  # noqa: F401: fixtures

PICTURE = HEAD + """INDEX(%s); OUTPUT(uint8_t, p); OUTPUT(uint8_t, same);
KERNEL { const double v = 7 * x + 31 * y %s; p = (uint8_t)v; same = (uint8_t)v; }
"""


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(name + body)
        yield name, body
        at += 12 + size


def picture(path):
    """The pixels of a PNG file without filters."""
    parts = dict(chunks(path.read_bytes()))
    width, height, bits, kind, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert bits == 8 and rest == [0, 0, 0] and parts[b"IEND"] == b""
    channels = {0: 1, 2: 3, 6: 4}[kind]
    rows = numpy.frombuffer(zlib.decompress(parts[b"IDAT"]), "uint8").reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape((height, width, channels) if channels > 1 else (height, width))


@pytest.mark.parametrize("shape", [(11, 13), (300, 260), (5, 7, 3), (5, 7, 4)])
def test_pictures(run, tmp_path, shape):
    """Grey, and colours in a third dimension; the recipe has the digest of the numbers."""
    colours = len(shape) == 3
    text = PICTURE % (("y, x, c", "+ 50 * c") if colours else ("y, x", ""))
    got = results(run(text, "--shape", "x".join(map(str, shape)), "--out", "p=a.PNG" if colours else "p=a.png",
                      "--out", "same=b.npy", "--json"))
    want = numpy.fromfunction(lambda y, x, c=0: 7 * x + 31 * y + 50 * c, shape, dtype=int)
    want = want.clip(0, 255).astype("uint8")
    file = tmp_path / ("a.PNG" if colours else "a.png")
    assert (picture(file) == want).all() and (numpy.load(tmp_path / "b.npy") == want).all()
    assert got["p"]["digest"] == got["same"]["digest"]
    assert got["p"]["digest"] in (tmp_path / "a.recipe.json").read_text()
    assert "identical" in run(None, "a.recipe.json", command=["replay"]).stdout


def test_refused_pictures(run, tmp_path):
    for declared, words, says in [
            ("INDEX(y, x); OUTPUT(float, p);", ["--shape", "3x4"], "it is float32"),
            ("INDEX(x); OUTPUT(uint8_t, p);", ["--shape", "3"], "it has one dimension"),
            ("INDEX(y, x, c); OUTPUT(uint8_t, p);", ["--shape", "3x4x2"], "its last dimension has the length 2"),
            ("INDEX(y, x); OUTPUT(uint8_t, p);", ["--shape", "2000000x2000000"], "more than 2^30 bytes"),
            ("INDEX(y, x); OUTPUT(uint8_t, p);", ["--shape", f"1x{2**31}"], "more than 2^30 bytes")]:
        done = run(HEAD + declared + " KERNEL { p = 1; }\n", *words, "--out", "p=p.png", status=2)
        assert says in done.stderr and "p.png" in done.stderr and "FILE.npy" in done.stderr, done.stderr
    assert not list(tmp_path.glob("p.*"))


def test_raw(run, tmp_path):
    """Numbers alone, little-endian."""
    run(HEAD + "INDEX(y, x); OUTPUT(int16_t, o); OUTPUT(double, d); KERNEL { o = (int16_t)(300 * y - x); d = 0.1 * x; }",
        "--shape", "40x50", "--out", "o=o.raw", "--out", "d=d.raw")
    want = 300 * numpy.arange(40)[:, None] - numpy.arange(50)
    assert (tmp_path / "o.raw").read_bytes() == want.astype("<i2").tobytes()
    assert (tmp_path / "d.raw").read_bytes() == (0.1 * numpy.arange(50)).astype("<f8").tobytes() * 40
    assert run(None, "o.recipe.json", command=["replay"]).stdout.endswith("o.recipe.json\n")


LARGE = HEAD + """INDEX(i); INPUT(int32_t, x); OUTPUT(int32_t, o); OUTPUT(int32_t, u_new); WHOLE(int32_t, u, 1);
NEXT(u_new, u); SUM(int64_t, all);
KERNEL { o = x ^ 5; u_new = u(i) + 1; all = x; }
"""
MiB = 1 << 20


def limited(limits):
    def set_limits():
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))
    return set_limits


@pytest.fixture
def large(quern, run, tmp_path, cache, quick):
    """large(limits, words): 16 MiB of numbers in each array, under limits of the process."""
    x = numpy.arange(4 * MiB, dtype="int32")
    numpy.save(tmp_path / "x.npy", x)
    run(LARGE, "--in", "x=x.npy", "--in", "u=x.npy", "--out", "o=first.npy", "--out", "u_new=u1.npy", "--iterations", 2,
        "--recipe", "first.json")

    def call(limits, *words, status=0, wrapper=()):
        own = () if any("%r" in str(word) for word in words) else ("--out", "o=o.npy")
        done = subprocess.run([*wrapper, quern, "run", "--kernel", "k.c", "--in", "x=x.npy", "--in", "u=x.npy", *own,
                               *map(str, words)], cwd=tmp_path, capture_output=True, text=True,
                              preexec_fn=limited(limits),
                              env={"PATH": "/usr/bin:/bin", "QUERN_CACHE": str(cache), "CC": quick})
        assert done.returncode == status, (done.stdout, done.stderr)
        return done
    return call


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_larger_than_memory(large, tmp_path):
    """With memory for none of the arrays the outputs are made in their files, and so is the second place
    of what is carried on to the next iteration."""
    few = {"RLIMIT_DATA": 14 * MiB}
    large(few, "--out", "u_new=u2.npy", "--iterations", 2, "--recipe", "o.json", "--threads", 1)
    assert digest(tmp_path / "o.npy") == digest(tmp_path / "first.npy")
    assert digest(tmp_path / "u2.npy") == digest(tmp_path / "u1.npy")
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("first", "o"))
    assert first["results"] == second["results"]
    assert (numpy.load(tmp_path / "u2.npy") == numpy.arange(4 * MiB) + 2).all()
    large(few, "--out", "u_new=u2.raw", "--iterations", 3, "--threads", 1)
    assert (numpy.fromfile(tmp_path / "u2.raw", "<i4") == numpy.arange(4 * MiB) + 3).all()
    large(few, "--out", "o=o-%r.npy", "--out", "u_new=u-%r.raw", "--threads", 1)  # rows of a rank
    assert digest(tmp_path / "o-0.npy") == digest(tmp_path / "first.npy")
    assert (numpy.fromfile(tmp_path / "u-0.raw", "<i4") == numpy.arange(4 * MiB) + 1).all()
    # An output without a file is computed in memory, which is too small here.
    done = large(few, "--iterations", 2, "--threads", 1, status=1)
    assert "out of memory" in done.stderr
    assert not list(tmp_path.glob(".quern-*"))


def test_full_disk(large, tmp_path):
    """A file that cannot become so large is a message before the work, not a signal in it."""
    for limits in ({"RLIMIT_FSIZE": 15 * MiB, "RLIMIT_DATA": 14 * MiB}, {"RLIMIT_FSIZE": 15 * MiB}):
        done = large(limits, "--out", "u_new=u2.npy", "--threads", 1, status=1)
        assert "cannot write o.npy: File too large" in done.stderr
        assert not (tmp_path / "o.npy").exists() and not list(tmp_path.glob(".quern-*"))


def test_a_full_file_system(large, tmp_path):
    machine.need("mounting a disk")
    (tmp_path / "disk").mkdir()
    done = large({"RLIMIT_DATA": 14 * MiB}, "--out", "u_new=disk/u2.npy", "--threads", 1, status=1, wrapper=full_disk(15000))
    assert "cannot write disk/u2.npy: No space left on device" in done.stderr
    assert not (tmp_path / "o.npy").exists() and not list(tmp_path.glob(".quern-*"))


def test_a_recipe_on_a_full_disk(quern, tmp_path):
    """Its few bytes are refused last, and no other file has been put in place until then."""
    machine.need("mounting a disk")
    (tmp_path / "disk").mkdir()
    (tmp_path / "k.c").write_text(HEAD + "INDEX(i); OUTPUT(double, v); KERNEL { v = 1; }\n")
    full = full_disk(16)
    full[4] = full[4].replace("; exec", "; head -c 99999 /dev/zero >disk/z 2>/dev/null; exec")
    done = subprocess.run([*full, quern, "run", "--kernel", "k.c", "--shape", "5", "--out", "v=v.npy", "--recipe", "disk/r.json"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "cannot write disk/r.json: No space left on device" in done.stderr, done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"disk", "k.c"}


def compiler_that(tmp_path, command):
    """A compiler that first does something to the files of the run, which has begun then."""
    (tmp_path / "cc").write_text(f'#!/bin/sh\n{command}\nexec cc "$@" -O1\n')
    (tmp_path / "cc").chmod(0o755)
    return {"CC": str(tmp_path / "cc"), "QUERN_CACHE": str(tmp_path / "cache")}


def test_input_is_cut_off(run, tmp_path):
    """A mapped file that becomes shorter is a message, and nothing is left."""
    numpy.save(tmp_path / "u.npy", numpy.ones(100000))
    env = compiler_that(tmp_path, f"truncate -s 5000 {tmp_path}/u.npy")
    done = run(HEAD + "INDEX(i); INPUT(double, u); OUTPUT(double, v); KERNEL { v = u; }\n", "--in", "u=u.npy", "--out", "v=v.npy",
               "--threads", 8, env=env, status=1)
    assert done.stderr.count("became shorter") == 1 and "do not change inputs" in done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"cc", "cache", "k.c", "u.npy"}


def test_checkpoint_of_another_run(run, tmp_path):
    """Two runs begin at the same time with one name: the second one does not replace the file of the first."""
    env = compiler_that(tmp_path, f"echo mine > {tmp_path}/state")
    text = HEAD + "INDEX(i); WHOLE(double, u, 1); OUTPUT(double, v); NEXT(v, u); KERNEL { v = u(i) + 1; }\n"
    numpy.save(tmp_path / "u.npy", numpy.zeros(5))
    done = run(text, "--in", "u=u.npy", "--out", "v=v.npy", "--iterations", 9, "--checkpoint", "state", "--checkpoint-every", 2, env=env)
    assert "another run has written the file of the checkpoint" in done.stderr
    assert (tmp_path / "state").read_text() == "mine\n" and (numpy.load(tmp_path / "v.npy") == 9).all()


def test_folder_as_input(run, tmp_path):
    (tmp_path / "d").mkdir()
    text = HEAD + "INDEX(i); INPUT(double, u); OUTPUT(double, v); KERNEL { v = u; }\n"
    done = run(text, "--in", "u=d", "--out", "v=d/v.npy", status=1)
    assert '"u" is a folder' in done.stderr
