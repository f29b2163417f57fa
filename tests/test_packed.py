"""Data in bzip2, in xz and in a ZIP archive, and files and addresses that are named instead of read. (gzip:
src/data/bytes/gzip_test.c, zstd: test_zstd.py.)"""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import struct
import subprocess
import tarfile
import zipfile

import numpy as np
import pytest

import test_zstd

CSV = b"y,a,b\n" + b"".join(b"%d,%d,%d\n" % (i % 3, i, 2 * i) for i in range(600))


def zipped(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_dot_", ".").replace("_in_", "/"), data)
    return out.getvalue()


PACKERS = {
    "bz2": lambda data: bz2.compress(data[:5]) + bz2.compress(data[5:]),
    "xz": lambda data: lzma.compress(data[:5]) + lzma.compress(data[5:], preset=0) + bytes(8),
    "zip": lambda data: zipped(a_in_=b"", a_in_table=data, __MACOSX_in_a_in_table=b"x", _dot_DS_Store=b"y"),
}


@pytest.fixture
def info(run_quern):
    return lambda *words: json.loads(run_quern("data", "info", *words, "--json").stdout)


@pytest.fixture
def refused(run_quern):
    return lambda *words: run_quern("data", "info", *words, status=1).stderr


def test_every_format(tmp_path, info):
    """Several streams, padding and folders; the digest of the plain file."""
    for name, data in test_zstd.formats():
        plain = tmp_path / f"{name}.plain"
        plain.write_bytes(data)
        wanted = info(plain)
        for ending, pack in PACKERS.items():
            if ending == "zip" and name == "npy":
                continue  # an archive of arrays is NPZ
            packed = tmp_path / f"{name}.packed"
            packed.write_bytes(pack(data))
            told = info(packed)
            assert told["format"] == f"{name}.{ending}" and told["digest"] == wanted["digest"]


def test_more_than_a_piece(tmp_path, info):
    """More than the readers take at once; also over a pipe, and from the cache."""
    rng = np.random.default_rng(1)
    data = b"y,a,b\n" + b"".join(b"%d,%d,%d\n" % (i % 2, *row) for i, row in enumerate(rng.integers(0, 1 << 24, (60000, 2))))
    (tmp_path / "t.csv").write_bytes(data)
    wanted = info(tmp_path / "t.csv")
    for ending, pack in PACKERS.items():
        path = tmp_path / f"t.csv.{ending}"
        path.write_bytes(pack(data))
        assert path.stat().st_size > 1 << 18
        assert info(path)["digest"] == wanted["digest"]


def test_damage(tmp_path, refused):
    """What is cut, changed or followed by something else is refused with its place."""
    draw = random.Random(5)
    path = tmp_path / "damaged"
    for ending, pack in ("bz2", bz2.compress), ("xz", lzma.compress), ("zip", lambda d: zipped(table=d)):
        data = pack(CSV)
        forms = [data[: draw.randrange(6, len(data))], data[: len(data) - 1]]
        for _ in range(3):
            changed = bytearray(data)
            changed[draw.randrange(60, len(data) // 2)] ^= 1 << draw.randrange(8)
            forms.append(bytes(changed))
        forms += [data + b"abc"] if ending != "zip" else []
        for form in forms:
            path.write_bytes(form)
            told = refused(path)
            assert "damaged" in told and "byte" in told and ("again" in told or "test" in told), told


def test_more_than_the_bound(tmp_path, refused):
    ones = b"1" * (6 << 20)
    for pack, tool in (bz2.compress, "bzip2"), (lambda d: lzma.compress(d, preset=0), "xz"):
        (tmp_path / "ones").write_bytes(pack(ones) * 16)
        told = refused(tmp_path / "ones")
        assert "64 MiB" in told and tool in told


def test_zip_archives(tmp_path, info, refused):
    """One file is read, one of several by its name; what has its own reader stays with it."""
    path = tmp_path / "t.zip"
    (tmp_path / "t.csv").write_bytes(CSV)
    path.write_bytes(zipped(train_dot_csv=CSV, test_dot_csv=b"y,a,b\n1,2,3\n"))
    told = refused(path)
    assert "several files: train.csv, test.csv" in told and "archive.zip:" in told
    assert info(f"{path}:train.csv")["digest"] == info(tmp_path / "t.csv")["digest"]
    assert info(f"{path}:test.csv")["items"] == 1
    assert 'no file "x", but train.csv' in refused(f"{path}:x")
    for files, word in (({}, "no file in the ZIP"), ({"b_dot_gz": gzip.compress(CSV)}, "gzip data inside"),
                        ({"xl_in_workbook_dot_xml": b"x", "b": b"c"}, "(.xlsx)"),
                        ({"META-INF_in_manifest_dot_xml": b"x", "content_dot_xml": b""}, "OpenDocument"),
                        ({"archive_in_data_dot_pkl": b"x", "archive_in_data_in_0": b"c"}, "PyTorch"),
                        ({"t_dot_parquet": b"PAR1" + bytes(600)}, "unpack it with unzip")):
        path.write_bytes(zipped(**files))
        assert word in refused(path), word
    array = io.BytesIO()
    np.savez(array, x=np.eye(3), y=[0, 1, 2])
    (tmp_path / "a.npz").write_bytes(array.getvalue())
    assert info(tmp_path / "a.npz")["format"] == "npz"


def test_tables_where_images_are_expected(tmp_path, run_quern):
    """A tar archive is one of images; what is said helps also those whose archive holds a table."""
    path = tmp_path / "t.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("data/train.csv")
        entry.size = len(CSV)
        archive.addfile(entry, io.BytesIO(CSV))
    told = run_quern("data", "convert", path, "-o", tmp_path / "o.csv", status=1).stderr
    assert "unpack the archive" in told and '"data/train.csv"' in told
    told = run_quern("data", "convert", path, "--label", "y", "-o", tmp_path / "o.csv", status=1).stderr
    assert 'no label column "y"' in told and "unpacked" in told and "put the images" not in told


HIDES = test_zstd.HIDES.replace('"libzstd"', '"libbz2"').replace("? NULL", '|| name && strstr(name, "liblzma") ? NULL')


def test_without_the_libraries(tmp_path, run_quern):
    hides = tmp_path / "hides.so"
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-x", "c", "-o", hides, "-"],
                   input=HIDES, text=True, check=True)
    hidden = {**os.environ, "LD_PRELOAD": str(hides)}
    for ending, package in ("bz2", "libbz2-1.0"), ("xz", "liblzma5"):
        path = tmp_path / f"a.{ending}"
        path.write_bytes(PACKERS[ending](CSV))
        told = run_quern("data", "info", path, env=hidden, status=None)
        assert told.returncode != 0 and package in told.stderr and path.name in told.stderr
        assert package in run_quern("version", env=hidden).stdout
        assert package not in run_quern("version").stdout


BINARY = bytes(range(256)) * 3
NAMED = [
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + BINARY, "(.xls)", "read_excel"), (b"ORC" + BINARY, "ORC", "read_orc"),
    (b"Obj\x01" + BINARY, "Avro", "read_avro"), (b"FEA1" + BINARY, "Feather file of version 1", "read_feather"),
    (b"\x89HDF\r\n\x1a\n" + BINARY, "HDF5", "h5py"), (b"MATLAB 5.0 MAT-file, Platform" + BINARY, "(.mat)", "savez"),
    (b"RDX3\nX\n" + BINARY, "(.RData)", "write.csv"), (b"X\n\0\0\0\3" + BINARY, "(.rds)", "readRDS"),
    (bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08" + BINARY, "(.sas7bdat)", "read_sas"),
    (b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!000 ", "(.xpt)", "read_sas"),
    (b"<stata_dta><header>", "(.dta)", "read_stata"), (b"\x72\x02\x01\0" + BINARY, "(.dta)", "read_stata"),
    (b"$FL2@(#) SPSS DATA FILE" + BINARY, "(.sav)", "read_spss"), (b"%PDF-1.7\n%" + BINARY, "PDF", "CSV"),
    (b"\x80\x04\x95" + BINARY, "pickle", "never run"), (b"\n<!DOCTYPE html>\n<html>", "HTML", "read_html"),
    (b"\xef\xbb\xbf<HTML lang=de>", "HTML", "download"), (b"<?xml version='1.0'?><a/>", "XML", "read_xml"),
    (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS", "git lfs pull"),
    (b"@RELATION iris\n", "ARFF", "loadarff"), (b"7z\xbc\xaf\x27\x1c" + BINARY, "7z", "7z x"),
    (b"1,2\n\0\0", "not text", "CSV"),
    *((data, name, "convert it to PNG or JPEG; WebP, GIF") for data, name in (
        (b"P6\n2 2\n255\nabcdefghijkl", "PPM"), (b"P2\n# a\n# b\n2 1 255\n1 2\n", "PGM"), (b"P7\nWIDTH 1\n", "PAM"),
        (b"\0\0\1\0\1\0" + BINARY, "icon"), (b"<?xml version='1.0'?>\n<svg/>", "SVG"))),
]


def test_named_formats(tmp_path, info, refused):
    for data, name, remedy in NAMED:
        (tmp_path / "file").write_bytes(data)
        told = refused(tmp_path / "file")
        assert name in told and remedy in told and "file" in told, told
    # R compresses its files
    (tmp_path / "file").write_bytes(gzip.compress(b"RDX3\nX\n" + BINARY))
    assert "(.RData)" in refused(tmp_path / "file")
    # words that are as good as any name of a column
    for word in "ORCID", "GIF8", "P6", "a,b,c,dWEBP", "BZh9", "$FL2":
        (tmp_path / "file").write_text(f"y,{word}\n0,1\n1,2\n" if "," not in word else f"{word}\n0,1,2,3\n1,2,3,4\n")
        assert info(tmp_path / "file")["items"] == 2
        (tmp_path / "file").write_text(f"{word},z\n0,1\n1,2\n" if "," not in word else f"{word}\n0,1,2,3\n1,2,3,4\n")
        assert info(tmp_path / "file")["items"] == 2


def test_named_addresses(tmp_path, info, refused, monkeypatch):
    for address, remedy in (("az://box/t.csv", "az storage blob"), ("foo://host/t", "begins with s3://"),
                            ("file:///t.csv", "leave out file://")):
        told = refused(address)
        assert remedy in told and f"at {address}" in told and "no such file" not in told
    # a folder may be called so
    monkeypatch.chdir(tmp_path)
    (tmp_path / "az:").mkdir()
    (tmp_path / "az:" / "t.csv").write_bytes(CSV)
    assert info("az://t.csv")["items"] == 600
