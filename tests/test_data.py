"""The data engine through the command: what `quern data` reads and writes, against Python's own
gzip, csv, hashlib and NumPy."""

import csv
import gzip
import json
import struct
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import data_vectors
from builds import ROOT

DIGITS_1 = "14f9593ad5442787f516ddb439ba2ca926121e705db1787a07a081ff0859f2b6"


def digest(values, labels):
    kind = 1 if values.dtype == np.uint8 else 2
    flat = None if labels is None else np.asarray(labels, dtype="<i4").tobytes()
    return data_vectors.digest_of(kind, *values.shape, values.tobytes(), flat)


def idx(array):
    array = np.asarray(array, dtype=np.uint8)
    return (bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            + array.tobytes())


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


def check(told, values, labels):
    assert told["type"] == ("u8" if values.dtype == np.uint8 else "f32")
    assert (told["items"], told["features"]) == values.shape
    assert told["classes"] == (0 if labels is None else max(labels) + 1)
    assert told["digest"] == digest(values, labels)


def table(seed, items=500, features=12):
    draw = np.random.default_rng(seed)
    return (draw.integers(0, 256, (items, features)).astype(np.uint8),
            draw.integers(0, 10, items).tolist())


@pytest.mark.parametrize("name", ["exact_sum", "digest"])
def test_vectors_are_current(name):
    """The vectors that the C tests contain are what tests/data_vectors.py computes."""
    folder = {"exact_sum": "num", "digest": "data/table"}[name]
    written = subprocess.run([sys.executable, ROOT / "tests" / "data_vectors.py", name],
                             capture_output=True, check=True).stdout
    assert written == (ROOT / "src" / folder / f"{name}_vectors.h").read_bytes()


@pytest.mark.parametrize("separator, end", [(",", "\n"), (";", "\r\n"), ("\t", "\n")])
@pytest.mark.parametrize("packed", [False, True])
def test_csv_of_bytes(tmp_path, info, separator, end, packed):
    values, labels = table(1)
    path = tmp_path / "data.csv"  # the name does not tell that it is packed
    opener = gzip.open if packed else open
    with opener(path, "wt", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerow(["the, class"] + [f'f "{i}"' for i in range(values.shape[1])])
        writer.writerows([label, *row] for label, row in zip(labels, values.tolist()))
    told = info(path)
    check(told, values, labels)
    assert told["format"] == ("csv.gz" if packed else "csv")
    check(info(path, "--label", "the, class"), values, labels)


def test_csv_of_floats(tmp_path, info):
    """Every value is the nearest float32, as NumPy reads it from the shortest and the longest text."""
    draw = np.random.default_rng(2)
    bits = draw.integers(0, 2**32, (3000, 8), dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    values[~np.isfinite(values)] = 0.5
    values[:500] = draw.normal(size=(500, 8))
    labels = draw.integers(0, 3, 3000).tolist()
    for form in (np.float32.__repr__, lambda v: f"{float(v):.60g}", lambda v: f"{float(v):.9e}"):
        path = tmp_path / "floats.csv"
        with open(path, "w") as file:
            for row, label in zip(values, labels):
                cells = [form(v).replace("np.float32(", "").rstrip(")") for v in row]
                file.write(",".join(cells) + f",{label}\n")
        check(info(path, "--label", "last"), values, labels)
        check(info(path, "--label", "9"), values, labels)


def test_doubly_rounded(tmp_path, info):
    """Decimal numbers a hair beside the middle of two floats: rounding twice would go wrong."""
    draw = np.random.default_rng(3)
    texts, values = [], []
    for _ in range(2000):
        low = abs(np.float32(draw.normal() * 10.0 ** draw.integers(-30, 30)))
        high = np.nextafter(low, np.float32(np.inf))
        middle = (Fraction(float(low)) + Fraction(float(high))) / 2
        places = middle.denominator.bit_length() - 1  # the denominator is 2^places
        digits = middle.numerator * 5**places * 10**40
        for side in (-1, 1):
            texts.append(f"{digits + side}e-{places + 40}")
            values.append(low if side < 0 else high)
    path = tmp_path / "middle.csv"
    path.write_text("\n".join(texts) + "\n")
    check(info(path, "--unlabelled"), np.array(values, dtype=np.float32).reshape(-1, 1), None)


@pytest.mark.parametrize("packed", [False, True])
def test_idx(tmp_path, info, packed):
    values, labels = table(4, items=300, features=35)
    write = gzip.compress if packed else bytes
    images, marks = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(write(idx(values.reshape(300, 5, 7))))
    marks.write_bytes(write(idx(labels)))
    told = info(images, "--labels", marks)
    check(told, values, labels)
    assert (told["rows"], told["columns"]) == (5, 7)
    assert told["format"] == ("idx.gz" if packed else "idx")
    check(info(images), values, None)


def test_formats_agree(tmp_path, info):
    """The digest is that of the content: the same table has it in every format."""
    values, labels = table(5)
    (tmp_path / "a").write_bytes(idx(values))
    (tmp_path / "b").write_bytes(idx(labels))
    np.savetxt(tmp_path / "c", np.c_[values, labels], fmt="%d", delimiter=";")
    assert (info(tmp_path / "a", "--labels", tmp_path / "b")["digest"]
            == info(tmp_path / "c", "--label", "last")["digest"] == digest(values, labels))


def test_large_file(tmp_path, info):
    """Several megabytes, so that all threads and many blocks take part."""
    values, labels = table(6, items=20000, features=100)
    path = tmp_path / "large.csv"
    np.savetxt(path, np.c_[labels, values], fmt="%d", delimiter=",")
    check(info(path), values, labels)
    with open(path, "a") as file:
        file.write("1," + ",".join(["0.5"] * 100) + "\n")  # the last line makes it float32
    floats = np.vstack([values.astype(np.float32), np.full((1, 100), 0.5, np.float32)])
    check(info(path), floats, labels + [1])


WRONG = [
    (b"", (), "empty", ""),
    (b"a,b\n", (), "no items", "line 1"),
    (b"1,2\n3,4,5\n", (), "3 cells", "line 2"),
    (b"a,b\n1,2\n3,red\n", (), "red", "line 3, column 2"),
    (b"1,2\n3,inf\n", (), "inf", "line 2"),
    (b"1.5,2\nnan,4\n", (), "missing", "line 2"),
    (b"1,2\n", ("--label", "7"), "label column", "line 1"),
    (idx([[1, 2]])[:-1], (), "claims", "byte 13"),
    (b"\0\0\x08\x03" + b"\xff" * 12 + b"1", (), "claims", "byte"),
    (b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", (), "floats", "byte 2"),
    (gzip.compress(b"1,2\n3,4\n")[:-6], (), "cut off", "compressed"),
    (gzip.compress(b"1,2\n")[:10] + b"\x07" + bytes(20), (), "corrupt", "compressed"),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong_files(tmp_path, run_quern, case):
    content, flags, what, where = WRONG[case]
    path = tmp_path / "wrong.data"
    path.write_bytes(content)
    done = run_quern("data", "info", path, *flags, status=None)
    assert done.returncode not in (0, None) and done.returncode > 0
    assert done.stdout == ""
    for part in (what, where, "wrong.data"):
        assert part in done.stderr


def test_missing_and_folder(tmp_path, run_quern):
    for path in (tmp_path / "none.csv", tmp_path):
        done = run_quern("data", "info", path, status=None)
        assert done.returncode > 0 and str(path) in done.stderr


def test_digits(tmp_path, run_quern, info):
    """The digits of seed 1 have their fixed bytes, in IDX, in CSV and in pieces."""
    images, marks, text = tmp_path / "i.idx", tmp_path / "l.idx", tmp_path / "d.csv"
    run_quern("data", "synth", "digits", "--items", 1000, "--seed", 1, "-o", images,
              "--labels", marks)
    run_quern("data", "synth", "digits", "--items", 1000, "--seed", 1, "-o", text)
    values = np.frombuffer(images.read_bytes()[16:], np.uint8).reshape(1000, 784)
    labels = list(marks.read_bytes()[8:])
    assert images.read_bytes() == idx(values.reshape(1000, 28, 28))
    assert marks.read_bytes() == idx(labels)
    assert digest(values, labels) == DIGITS_1
    check(info(images, "--labels", marks), values, labels)
    check(info(text), values, labels)
    rows = list(csv.reader(text.open()))
    assert rows[0][:2] == ["label", "r0c0"] and rows[0][-1] == "r27c27"
    assert np.array_equal(np.array(rows[1:], dtype=int), np.c_[labels, values])

    run_quern("data", "synth", "digits", "--items", 10, "--seed", 1, "--first", 990, "-o", images,
              "--labels", marks)
    assert images.read_bytes() == idx(values[990:].reshape(10, 28, 28))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.csv", "i.idx", "l.idx"]


def test_digits_can_be_learned_but_not_at_once(tmp_path, run_quern):
    """The nearest of the ten mean images is often wrong, so a network has something to do, and more
    often right, so it can."""
    path, marks = tmp_path / "i.idx", tmp_path / "l.idx"
    run_quern("data", "synth", "digits", "--items", 6000, "--seed", 2, "-o", path,
              "--labels", marks)
    values = np.frombuffer(path.read_bytes()[16:], np.uint8).reshape(6000, 784) / 255
    labels = np.frombuffer(marks.read_bytes()[8:], np.uint8)
    means = np.array([values[:5000][labels[:5000] == k].mean(0) for k in range(10)])
    distance = ((values[5000:, None] - means) ** 2).sum(2)
    assert 0.5 < (distance.argmin(1) == labels[5000:]).mean() < 0.85


@pytest.mark.parametrize("scale", ["minmax", "robust"])
def test_a_width_beyond_floats_is_refused(run_quern, tmp_path, scale):
    (tmp_path / "t.csv").write_text("y,a,b\n" + "0,1,-3e38\n1,2,3e38\n" * 4)
    done = run_quern("train", "--data", tmp_path / "t.csv", "--model", "dense 2 softmax", "--scale", scale,
                     "-o", tmp_path / "m", status=1)
    assert "feature 2" in done.stderr and "--drop" in done.stderr and not (tmp_path / "m").exists()
