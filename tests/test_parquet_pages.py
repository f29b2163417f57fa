"""Parquet files that other programs write and pyarrow does not: their pages, check sums, LZ4 and types. Each is
written here byte by byte, and beside it the same table as CSV, which must have the same digest."""

import json
import math
import struct
import zlib

import pytest

from parquet_writer import record, varint

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_2 = 0, 2, 3
LZ4 = 5
CHANGED = 1 << 40  # of a check sum: a wrong one


def page(kind, header, body, made=None, crc=None):
    """`crc`: 0: the right one; CHANGED: a wrong one."""
    head = {1: kind, 2: len(body) if made is None else made, 3: len(body)}
    if crc is not None:
        sum_ = zlib.crc32(body) ^ (crc != 0)
        head[4] = sum_ if sum_ < 1 << 31 else sum_ - (1 << 32)
    return signed(head | {{DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_2: 8}[kind]: header}) + body


def signed(fields):
    """parquet_writer.record writes numbers from 0; a check sum may be negative, so it is added here."""
    if fields.get(4, 0) >= 0:
        return record(fields)
    marked = record({**fields, 4: 0x7E57C0DE})
    return marked.replace(varint(2 * 0x7E57C0DE), varint(-2 * fields[4] - 1), 1)


def write(path, leaf, pages, rows, codec=0):
    """One column `y`, a whole number of each row, and one column `x`, of the schema element `leaf`."""
    with open(path, "wb") as file:
        file.write(b"PAR1")
        chunks = []
        labels = [page(DATA_PAGE, {1: rows, 2: 0, 3: 3, 4: 3}, struct.pack(f"<{rows}i", *(i % 2 for i in range(rows))))]
        for name, kind, parts, packed in (b"y", INT32, labels, 0), (b"x", leaf.get(1, INT32), pages, codec):
            at, first = file.tell(), b"".join(parts)
            file.write(first)
            told = {1: kind, 2: [0, 3], 3: [name], 4: packed, 5: rows, 6: len(first) + 4096, 7: len(first), 9: at}
            if name == b"x" and len(pages) > 1:
                told |= {9: at + len(pages[0]), 11: at}
            chunks.append({2: at, 3: told})
        elements = [{4: b"schema", 5: 2}, {1: INT32, 3: 0, 4: b"y"}, {3: 0, 4: b"x"} | leaf]
        elements = [dict(sorted(e.items())) for e in elements]
        footer = record({1: 1, 2: elements, 3: rows, 4: [{1: chunks, 2: 1, 3: rows}]})
        file.write(footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path


def as_csv(path, texts):
    path.write_text("y,x\n" + "".join(f"{i % 2},{text}\n" for i, text in enumerate(texts)))
    return path


@pytest.fixture
def info(run_quern):
    return lambda *words: json.loads(run_quern("data", "info", *words, "--json").stdout)


@pytest.fixture
def refused(run_quern):
    return lambda *words: run_quern("data", "info", *words, status=1).stderr


@pytest.fixture
def same(info, tmp_path):
    """same(file, texts): the file has the digest of the column of texts as CSV."""
    def compare(path, texts, *words):
        told, wanted = info(path, *words), info(as_csv(tmp_path / "same.csv", texts), *words)
        for key in "digest", "table", "label", "features":
            assert told[key] == wanted[key], (path, words, key)
    return compare


def test_levels_of_a_flat_column(same, tmp_path):
    """Version 2 of pages: levels of repetition that are all 0, before those of missing values."""
    repeated, missing = varint(5 << 1) + b"\0", varint(1 << 1 | 1) + bytes([0b10111])
    body = repeated + missing + struct.pack("<4i", 7, 8, 9, 300)
    head = {1: 5, 2: 1, 3: 5, 4: 0, 5: len(missing), 6: len(repeated)}
    same(write(tmp_path / "t.parquet", {1: INT32, 3: 1}, [page(DATA_PAGE_2, head, body)], 5), ["7", "8", "9", "", "300"])


def test_check_sums(same, refused, tmp_path):
    """Pages of both versions and dictionaries; a wrong sum names file, column, page, byte and remedy."""
    numbers = struct.pack("<4i", 1, 2, 3, 4)
    indices = bytes([2]) + varint(1 << 1 | 1) + bytes([0b11100100, 0])
    first = {1: 4, 2: 0, 3: 3, 4: 3}
    second = {1: 4, 2: 0, 3: 4, 4: 0, 5: 0, 6: 0}
    path = tmp_path / "t.parquet"
    forms = {
        "page 1 ": lambda crc: [page(DATA_PAGE, first, numbers, crc=crc)],
        " page 1 ": lambda crc: [page(DATA_PAGE_2, second, numbers, crc=crc)],
        "page 2 ": lambda crc: [page(DICTIONARY_PAGE, {1: 4, 2: 0}, numbers, crc=0),
                                page(DATA_PAGE, first | {2: 8}, indices, crc=crc)],
        "page  1 ": lambda crc: [page(DICTIONARY_PAGE, {1: 4, 2: 0}, numbers, crc=crc),
                                 page(DATA_PAGE, first | {2: 8}, indices, crc=0)],
    }
    for name, pages in forms.items():
        for crc in None, 0:
            same(write(path, {1: INT32}, pages(crc), 4), ["1", "2", "3", "4"])
        told = refused(write(path, {1: INT32}, pages(CHANGED), 4))
        for word in " ".join(name.split()), "check sum", "t.parquet, byte", "column 2, x", "copy the file again", "--drop":
            assert word in told, (name, told)


def literals(bytes_):
    """A block of LZ4 that copies nothing."""
    more = len(bytes_) - 15
    return bytes([min(len(bytes_), 15) << 4]) + (b"" if more < 0 else b"\xff" * (more // 255) + bytes([more % 255])) + bytes_


def test_old_lz4(same, refused, tmp_path):
    """The codec LZ4 holds Hadoop's groups of blocks, or one block."""
    values = list(range(100, 400))
    body = struct.pack("<300i", *values)

    def group(*parts):
        blocks = [literals(p) for p in parts]
        return struct.pack(">I", sum(map(len, parts))) + b"".join(struct.pack(">I", len(b)) + b for b in blocks)

    forms = [literals(body), group(body), group(body[:700]) + group(body[700:]), group(body[:4], body[4:900], body[900:])]
    for packed in forms:
        parts = [page(DATA_PAGE, {1: 300, 2: 0, 3: 3, 4: 3}, packed, made=len(body))]
        same(write(tmp_path / "t.parquet", {1: INT32}, parts, 300, LZ4), map(str, values))
    # a group that claims more or less than its blocks hold, and one that is cut off
    for packed in forms[1][:3] + b"\x11" + forms[1][4:], forms[3][:-1], forms[3] + b"\0\0\0\1":
        parts = [page(DATA_PAGE, {1: 300, 2: 0, 3: 3, 4: 3}, packed, made=len(body))]
        assert "corrupt" in refused(write(tmp_path / "t.parquet", {1: INT32}, parts, 300, LZ4))


def big(value, size):
    return value.to_bytes(size, "big", signed=True)


# Numbers that a double would round to the middle of two float32 first, large ones and small ones.
TEXTS = ["0.0", "-0.1", "12.5", "16777217.0", "16777216.9", "-999999.9", "12345678.9", "0.3"]
HARD = ["16777217.00000000000000000001", "-16777219.00000000000000000001", "0.00000000000000000001",
        "123456789012345678.12345678901234567890", "-1.50000000000000000000", "0.10000000000000000000"]


def unscaled(texts):
    return [int(text.replace(".", "")) for text in texts]


def test_decimals(same, refused, tmp_path, run_quern):
    """In all four physical types, as features, labels, weights and categories, they are what their texts are in CSV."""
    path, count = tmp_path / "t.parquet", len(TEXTS)
    whole, head = unscaled(TEXTS), {1: count, 2: 0, 3: 3, 4: 3}

    def leaf(kind, precision, scale, size=0, old=False):
        told = {6: 5, 7: scale, 8: precision} if old else {10: {5: {1: scale, 2: precision}}}
        return {1: kind, 3: 0} | told | ({2: size} if size else {})

    forms = [
        (leaf(INT32, 9, 1), struct.pack(f"<{count}i", *whole)),
        (leaf(INT64, 18, 1, old=True), struct.pack(f"<{count}q", *whole)),
        (leaf(FIXED, 11, 1, 5), b"".join(big(v, 5) for v in whole)),
        (leaf(FIXED, 38, 1, 16, old=True), b"".join(big(v, 16) for v in whole)),
        (leaf(FIXED, 70, 1, 30), b"".join(big(v, 30) for v in whole)),
        (leaf(BYTES, 12, 1), b"".join(struct.pack("<I", 5 + i) + big(v, 5 + i) for i, v in enumerate(whole))),
        (leaf(BYTES, 60, 1, old=True), b"".join(struct.pack("<I", 20) + big(v, 20) for v in whole)),
    ]
    for element, body in forms:
        same(write(path, element, [page(DATA_PAGE, head, body)], count), TEXTS)
    for words in (["--label", "x", "--task", "regress"], ["--category", "x"]):
        same(path, TEXTS, *words)
    hard = b"".join(big(v, 20) for v in unscaled(HARD))
    write(path, leaf(FIXED, 48, 20, 20), [page(DATA_PAGE, {1: 6, 2: 0, 3: 3, 4: 3}, hard)], 6)
    same(path, HARD)
    # as the nearest doubles in another file, but for those whose nearest float32 would be another
    for ending in ("parquet", "csv"):
        told = [json.loads(run_quern("data", *words, "--unlabelled", "--json").stdout)["digest"] for words in (
            ("convert", path, "-o", tmp_path / f"u.{ending}"), ("info", tmp_path / f"u.{ending}"))]
        assert told[0] == told[1], ending
    doubles = [float(text.split(",")[-1]) for text in (tmp_path / "u.csv").read_text().split()[1:]]
    apart = [abs(got - float(text)) / math.ulp(float(text)) for got, text in zip(doubles, HARD)]
    assert apart == [1, 0, 0, 0, 0, 0]
    same(path, HARD, "--label", "x", "--task", "regress")
    # whole ones are bytes and classes as in CSV; a dictionary, and a missing value
    bytes_ = ["0", "255", "3", "7", "3", "1", "2", "9"]
    write(path, leaf(FIXED, 38, 0, 16), [page(DATA_PAGE, head, b"".join(big(int(v), 16) for v in bytes_))], count)
    same(path, bytes_)
    same(path, bytes_, "--label", "x")
    entries = b"".join(big(v, 9) for v in (-50, 125))
    indices = varint(3 << 1) + b"\1" + varint(1 << 1) + b"\0" + bytes([1]) + varint(1 << 1 | 1) + bytes([0b010])
    element = {**leaf(FIXED, 20, 1, 9), 3: 1}
    levels = struct.pack("<I", 4) + indices[:4]
    parts = [page(DICTIONARY_PAGE, {1: 2, 2: 0}, entries),
             page(DATA_PAGE, {1: 4, 2: 8, 3: 3, 4: 3}, levels + indices[4:])]
    same(write(path, element, parts, 4), ["-5.0", "12.5", "-5.0", ""])
    # bytes that are more than a decimal can have
    body = struct.pack("<I", 40) + big(1 << 300, 40)
    told = refused(write(path, leaf(BYTES, 30, 1), [page(DATA_PAGE, {1: 1, 2: 0, 3: 3, 4: 3}, body)], 1))
    assert "corrupt" in told and "column 2, x" in told


def test_bytes_are_texts(same, refused, tmp_path):
    texts = ["red", "green", "", "a text of more than twelve bytes"]
    body = b"".join(struct.pack("<I", len(t)) + t.encode() for t in texts)
    path = write(tmp_path / "t.parquet", {1: BYTES}, [page(DATA_PAGE, {1: 4, 2: 0, 3: 3, 4: 3}, body)], 4)
    same(path, texts)
    body = b"".join(struct.pack("<I", 2) + t for t in (b"ok", b"\xff\0", b"ok", b"ok"))
    told = refused(write(path, {1: BYTES}, [page(DATA_PAGE, {1: 4, 2: 0, 3: 3, 4: 3}, body)], 4))
    assert "not UTF-8" in told and "item 1, column 2, x" in told


def test_types_have_their_names(refused, info, tmp_path):
    """What is not read is called by its name, with what helps, and the rest of the table is read without it."""
    struct_, listed = {5: 1}, {5: 1, 6: 3}
    leaves = [
        ({1: FIXED, 2: 12, 6: 21}, "INTERVAL"), ({1: FIXED, 2: 16, 10: {14: {}}}, "UUIDs"),
        ({1: BYTES, 6: 20}, "BSON documents"), ({1: BYTES, 10: {17: {}}}, "geometries"),
        ({1: FIXED, 2: 3}, "bytes of a fixed length"), ({1: INT32, 3: 2}, "lists"),
        (struct_, "records with fields"), (listed, "lists"), ({5: 1, 6: 1}, "maps"), ({5: 1, 10: {16: {}}}, "VARIANT"),
    ]
    path = tmp_path / "t.parquet"
    for leaf, name in leaves:
        with open(path, "wb") as file:
            file.write(b"PAR1" + struct.pack("<i", 3))
            chunk = {2: 4, 3: {1: INT32, 2: [0], 3: [b"y"], 4: 0, 5: 1, 6: 4, 7: 4, 9: 4}}
            inner = [{1: INT32, 3: 0, 4: b"in"}] * (5 in leaf)
            elements = [{4: b"schema", 5: 1}, dict(sorted(({3: 0, 4: b"its name"} | leaf).items())), *inner]
            footer = record({1: 1, 2: elements, 3: 1, 4: [{1: [chunk], 2: 1, 3: 1}]})
            file.write(footer + struct.pack("<I", len(footer)) + b"PAR1")
        told = refused(path, "--unlabelled")
        assert f"the column holds {name}" in told or f"({name})" in told, (name, told)
        assert "column 1, its name" in told and "--drop" in told and "item" not in told
        if "lists" in name or "maps" in name:
            assert 't.pop("its name")' in told, told
