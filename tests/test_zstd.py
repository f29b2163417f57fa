"""Files compressed with zstd: what they hold counts, whatever the format; bad bytes are refused."""

import io
import json
import os
import struct
import subprocess
import tarfile

import numpy as np
import pytest

CSV = b"y,a,b\n" + b"".join(b"%d,%d,%d\n" % (i % 3, i, 2 * i) for i in range(60))
# The same CSV as `zstd -19` writes it: compressed blocks with entropy codes.
PACKED = bytes.fromhex("28b52ffd60e100450700161e3912c015d201ef1cffc6b54d36d944265c8fb30730003300"
                       "35007312165c567d78473d706e7ab9ac9dbc932e9c2b0e5846bcee868fb9725a265cdcd5"
                       "3347876573ef3ae764592638f020614e6809cb4a0ce81d89ab73231e5d5631f54ec4a273"
                       "354f97d11c7a37733bd7995d26b3f4aec200ce51b8b86cc283770d130334730258ccb2aa"
                       "67eea80e33377567596bce9dd432733506846534ae7037e311e63aa6b04cc622dc153d61"
                       "8ee810960ddd70579a012b7280b823f21273433ec4b29293b8137221e64af88865243c88"
                       "bb115e3157e114cb44b888bb020c9839025cb36c008fb92be000")


def frame(data, last_block=True):
    """A frame with its size, of one stored block."""
    return (b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
            + struct.pack("<I", last_block | len(data) << 3)[:3] + data)


def ones(size):
    """A frame of `size` digits 1: blocks of 4 bytes, each of which stands for up to 128 KiB."""
    whole, rest = divmod(size, 1 << 17)
    blocks = [1 << 17] * whole + [rest]
    return (b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size)
            + b"".join(struct.pack("<I", (i == whole) | 2 | n << 3)[:3] + b"1" for i, n in enumerate(blocks)))


SKIPPED = b"\x5a\x2a\x4d\x18\x03\0\0\0abc"


@pytest.fixture
def info(run_quern):
    def ask(path, *more):
        return json.loads(run_quern("data", "info", path, "--json", *more).stdout)
    return ask


def formats():
    array = np.arange(12, dtype="<f8").reshape(6, 2) / 4
    npy = io.BytesIO()
    np.save(npy, array)
    yield "csv", CSV
    yield "npy", npy.getvalue()
    yield "idx", b"\0\0\x08\x02" + struct.pack(">II", 3, 2) + bytes(range(6))
    yield "libsvm", b"1 1:0.5 2:1\n0 2:3\n1 1:2\n"
    try:
        from PIL import Image
    except ImportError:
        return
    tar, image = io.BytesIO(), io.BytesIO()
    Image.new("L", (3, 2), 7).save(image, "PNG")
    with tarfile.open(fileobj=tar, mode="w") as archive:
        entry = tarfile.TarInfo("a/1.png")
        entry.size = len(image.getvalue())
        archive.addfile(entry, io.BytesIO(image.getvalue()))
    yield "images", tar.getvalue()


def test_every_format(tmp_path, info):
    for name, data in formats():
        plain, packed = tmp_path / f"{name}.plain", tmp_path / f"{name}.packed"
        plain.write_bytes(data)
        packed.write_bytes(SKIPPED + frame(data[:5]) + frame(b"") + frame(data[5:]))
        wanted, told = info(plain), info(packed)
        assert told["format"] == name + ".zst" and wanted["format"] == name
        assert told["digest"] == wanted["digest"]


def test_entropy_coded(tmp_path, info):
    (tmp_path / "a.csv").write_bytes(CSV)
    (tmp_path / "a.csv.zst").write_bytes(PACKED)
    assert info(tmp_path / "a.csv.zst")["digest"] == info(tmp_path / "a.csv")["digest"]


def test_damage(tmp_path, run_quern):
    path = tmp_path / "a.csv.zst"
    for what, data in (("cut off", PACKED[:-1]), ("cut off", frame(CSV)[:-1]), ("corrupt", PACKED + b"\n\n\n\n\n"),
                       ("corrupt", PACKED[:4] + b"\xff" * 9 + PACKED[13:]), ("empty once unpacked", frame(b"")),
                       ("cut off", frame(CSV, last_block=False))):
        path.write_bytes(data)
        told = run_quern("data", "info", path, status=1).stderr
        assert what in told and "a.csv.zst" in told and ("byte" in told or "empty" in what)


def test_more_than_the_bound(tmp_path, run_quern):
    path = tmp_path / "ones.csv.zst"
    path.write_bytes(ones(80 << 20))
    assert path.stat().st_size < 4000
    told = run_quern("data", "info", path, status=1).stderr
    assert "64 MiB" in told and "zstd -d" in told


HIDES = r"""
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
    void *(*next)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof next);
    return name && strstr(name, "libzstd") ? NULL : next(name, flags);
}
"""


def test_without_the_library(tmp_path, run_quern):
    hides, path = tmp_path / "hides.so", tmp_path / "a.zst"
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-x", "c", "-o", hides, "-"],
                   input=HIDES, text=True, check=True)
    path.write_bytes(PACKED)
    hidden = {**os.environ, "LD_PRELOAD": str(hides)}
    told = run_quern("data", "info", path, status=None, env=hidden)
    assert told.returncode != 0 and "libzstd1" in told.stderr and "a.zst" in told.stderr
    assert "libzstd1" in run_quern("version", env=hidden).stdout
    assert "libzstd 1." in run_quern("version").stdout
