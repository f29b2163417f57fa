"""Arrays of NumPy as data: what numpy.save and numpy.savez write is read as NumPy reads it, with the
digest of the same values in another format."""

import gzip
import io
import json
import struct
import zipfile

import numpy as np
import pytest

import data_vectors

MISSING = np.array([0x7FC00000], "<u4").view("<f4")[0]


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


def digest(array, labels=None):
    """Of docs/exactness.md 2.2, for the values of 2.1.8."""
    items = array.shape[0]
    flat = np.ascontiguousarray(array).reshape(items, -1)
    if flat.dtype.kind == "f":
        with np.errstate(over="ignore"):
            values = flat.astype("<f4")
        values[np.isnan(values)] = MISSING
    else:
        values = flat.astype("<u1" if flat.min() >= 0 and flat.max() <= 255 else "<f4")
    kind = 1 if values.dtype == np.uint8 else 2
    known = None if labels is None else np.asarray(labels, "<i4").tobytes()
    return data_vectors.digest_of(kind, items, values.shape[1], values.tobytes(), known,
                                  wide=data_vectors.wide_of(flat))


TYPES = ["?", "u1", "i1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", ">u4", "<i8", ">i8",
         "<u8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]
SHAPES = [(37,), (37, 5), (37, 3, 4), (37, 3, 4, 2), (1, 1), (9000, 3)]


def values(dtype, shape, seed=1):
    """All that the type can hold, and much that float32 can not hold exactly."""
    draw = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return draw.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        widest = {2: 5, 4: 30, 8: 30}[dtype.itemsize]
        made = draw.normal(size=shape) * 10.0 ** draw.integers(-widest - 3, widest, shape)
        return np.clip(made, -60000, 60000).astype(dtype) if dtype.itemsize == 2 else made.astype(dtype)
    limits = np.iinfo(dtype)
    return draw.integers(limits.min, limits.max, shape, dtype=dtype.newbyteorder("="),
                         endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(tmp_path, info, dtype):
    path = tmp_path / "a"  # the name tells nothing
    for shape in SHAPES:
        array = values(dtype, shape)
        for order in "CF":
            with open(path, "wb") as file:
                np.save(file, np.asarray(array, order=order))
            told = info(path)
            assert (told["format"], told["items"]) == ("npy", shape[0])
            assert told["features"] == array.size // shape[0]
            assert told["digest"] == digest(array), (shape, order)
            assert (told["rows"], told["columns"]) == (shape[1:] if len(shape) == 3 else (0, 0))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("packed", [False, True])
def test_versions(tmp_path, info, version, packed):
    array = values("<f8", (40, 6))
    with (gzip.open if packed else open)(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version)
    told = info(tmp_path / "a.npy")
    assert told["digest"] == digest(array)
    assert told["format"] == ("npy.gz" if packed else "npy")


def test_small_integers_are_bytes(tmp_path, info):
    """As in CSV: whole numbers up to 255 are bytes, of whatever type; one more and none is."""
    array = np.arange(20000, dtype="i8").reshape(-1, 4) % 256
    np.save(tmp_path / "a.npy", array)
    np.savetxt(tmp_path / "a.csv", array, fmt="%d", delimiter=",")
    told = info(tmp_path / "a.npy")
    assert told["type"] == "u8"
    assert told["digest"] == info(tmp_path / "a.csv", "--unlabelled")["digest"]
    array[-1, 0] = 256
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    np.savetxt(tmp_path / "a.csv", array, fmt="%d", delimiter=",")
    told = info(tmp_path / "a.npy")
    assert told["type"] == "f32"
    assert told["digest"] == info(tmp_path / "a.csv", "--unlabelled")["digest"]


def test_rounding(tmp_path, info):
    """A float64 is rounded once to float32, ties to even; so are integers."""
    edge = [1 + 2.0 ** -24, 1 + 2.0 ** -24 + 2.0 ** -52, 1 + 3 * 2.0 ** -24, 3.4028235677973362e38,
            2.0 ** -149, 2.0 ** -150, 2.0 ** -150 * (1 + 2.0 ** -52), -0.0, 5e-324, -7e-320]
    array = np.array(edge).reshape(-1, 1)
    np.save(tmp_path / "a.npy", array)
    assert info(tmp_path / "a.npy")["digest"] == digest(array)
    whole = np.array([[2 ** 24 + 1], [2 ** 63 - 1], [-2 ** 63], [2 ** 62 + 2 ** 38], [2 ** 53 + 1],
                      [2 ** 53 + 2 ** 29 + 1]], "i8")  # the last: not by way of float64
    np.save(tmp_path / "a.npy", whole)
    np.savetxt(tmp_path / "a.csv", whole, fmt="%d")
    assert info(tmp_path / "a.npy")["digest"] == digest(whole)
    assert info(tmp_path / "a.npy")["digest"] == info(tmp_path / "a.csv", "--unlabelled")["digest"]


def test_missing(tmp_path, info):
    array = values("<f4", (30, 4))
    array[3, 2] = array[29, 3] = np.nan
    np.save(tmp_path / "a.npy", array)
    told = info(tmp_path / "a.npy")
    assert told["digest"] == digest(array)
    assert [column["missing"] for column in told["table"]] == [0, 0, 1, 1]


# ---------------------------------------------------------------- labels

@pytest.mark.parametrize("dtype", ["u1", "i4", ">i8", "<f4", "<f8", "?"])
def test_labels(tmp_path, info, dtype):
    array = values("<f4", (60, 4))
    labels = (np.arange(60) % (2 if dtype == "?" else 3)).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    for shape in (60,), (60, 1):
        np.save(tmp_path / "y.npy", labels.reshape(shape))
        told = info(tmp_path / "x.npy", "--labels", tmp_path / "y.npy")
        assert told["digest"] == digest(array, labels.astype(int))


def through_csv(tmp_path, info, array, texts, *options):
    """What the same labels mean in a CSV file."""
    with open(tmp_path / "same.csv", "w") as file:
        for label, row in zip(texts, array):
            file.write(",".join([label, *(np.format_float_positional(v, unique=True) for v in row)]) + "\n")
    return info(tmp_path / "same.csv", "--header", "no", *options)


@pytest.mark.parametrize("labels, task", [
    (np.array(["cat", "dög", "bird"]), "auto"),
    (np.array([b"one", b"two", b"three"]), "auto"),
    (np.array([-1, 1, 7]), "auto"),
    (np.array([10, 20, 400]), "auto"),
    (np.array([0.5, -0.25, 3.0]), "auto"),
    (np.array([0.5, -0.25, 3.0]), "classify"),
    (np.array([0, 1, 2]), "regress"),
    (np.array([1.5, 2, 2.5]), "regress")])
def test_labels_are_those_of_csv(tmp_path, info, labels, task):
    """Classes, their names, targets and so the digest are those of a CSV file of the same cells."""
    array = values("<f4", (60, 4))
    chosen = labels[np.random.default_rng(3).integers(0, len(labels), 60)]
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "y.npy", chosen)
    texts = [t.decode() if isinstance(t, bytes) else str(t) for t in chosen.tolist()]
    told = info(tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--task", task)
    same = through_csv(tmp_path, info, array, texts, "--task", task)
    for key in "digest", "classes", "target", "class_names", "counts":
        assert told[key] == same[key], key


# ---------------------------------------------------------------- archives

@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("x, y", [("x", "y"), ("X", "y"), ("X", "Y"), ("data", "labels"),
                                  ("data", "target"), ("images", "labels"), ("x_train", "y_train"),
                                  ("X_train", "y_train"), ("train_images", "train_labels"),
                                  ("arr_0", "arr_1"), ("features", "label")])
def test_archives(tmp_path, info, save, x, y):
    array, labels = values("<f4", (60, 3, 2)), np.arange(60) % 4
    save(tmp_path / "a.npz", **{"other": np.array([{}], dtype=object), y: labels, x: array})
    told = info(tmp_path / "a.npz")
    assert (told["format"], told["rows"], told["columns"]) == ("npz", 3, 2)
    assert told["digest"] == digest(array, labels)
    assert info(tmp_path / "a.npz", "--unlabelled")["digest"] == digest(array)


def test_named_arrays(tmp_path, info):
    big, small = values("<f8", (60, 4)), values("<f8", (10, 4), 2)
    np.savez(tmp_path / "a.npz", x_train=big, y_train=np.arange(60) % 3, x_test=small,
             y_test=np.arange(10) % 3, odd=small * 2)
    assert info(f"{tmp_path}/a.npz")["digest"] == digest(big, np.arange(60) % 3)
    assert info(f"{tmp_path}/a.npz:x_test")["digest"] == digest(small, np.arange(10) % 3)
    assert info(f"{tmp_path}/a.npz:odd")["digest"] == digest(small * 2)
    told = info(f"{tmp_path}/a.npz:odd", "--labels", f"{tmp_path}/a.npz:y_test")
    assert told["digest"] == digest(small * 2, np.arange(10) % 3)
    np.savez(tmp_path / "y.npz", np.arange(60) % 5)
    told = info(f"{tmp_path}/a.npz", "--labels", tmp_path / "y.npz")
    assert told["digest"] == digest(big, np.arange(60) % 5)


def test_zip64(tmp_path, info):
    """Sizes in the fields of ZIP64, as Python writes to a pipe, and an archive with a comment."""
    array = values("<f4", (60, 4))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.comment = b"PK\5\6 is not an end here"
        with archive.open("x.npy", "w", force_zip64=True) as file:
            np.save(file, array)
    assert info(tmp_path / "a.npz")["digest"] == digest(array)
    whole = (tmp_path / "a.npz").read_bytes()
    at = whole.index(b"PK\1\2")
    size, begin = struct.unpack_from("<I", whole, at + 24)[0], struct.unpack_from("<I", whole, at + 42)[0]
    entry = bytearray(whole[at:whole.rindex(b"PK\5\6\0")])
    struct.pack_into("<II", entry, 20, 2 ** 32 - 1, 2 ** 32 - 1)
    struct.pack_into("<I", entry, 42, 2 ** 32 - 1)
    extra = struct.pack("<HHQQQ", 1, 24, size, size, begin)
    struct.pack_into("<H", entry, 30, len(extra))
    entry = entry[:46 + 5] + extra
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entry), at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at + len(entry), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2 ** 32 - 1, 2 ** 32 - 1, 0)
    (tmp_path / "b.npz").write_bytes(whole[:at] + entry + end64 + locator + end)
    assert np.array_equal(np.load(tmp_path / "b.npz")["x"], array)  # NumPy reads it too
    assert info(tmp_path / "b.npz")["digest"] == digest(array)


def test_same_model(tmp_path, run_quern):
    """Arrays and a CSV file of the same values give the same model, byte for byte."""
    draw = np.random.default_rng(5)
    array, labels = draw.normal(size=(200, 6)).astype("f4"), draw.integers(0, 3, 200)
    np.savez(tmp_path / "a.npz", x=array, y=labels)
    with open(tmp_path / "a.csv", "w") as file:
        for label, row in zip(labels, array):
            file.write(",".join([str(label), *(f"{v:.9g}" for v in row)]) + "\n")
    for name in "a.npz", "a.csv":
        run_quern("train", "--data", tmp_path / name, "--epochs", 2, "--model",
                  "dense 8 tanh; dense 3 softmax", "-o",
                  tmp_path / f"{name}.model")
    assert (tmp_path / "a.npz.model").read_bytes() == (tmp_path / "a.csv.model").read_bytes()


# ---------------------------------------------------------------- what is refused

def saved(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def header(text, data=b"", version=1):
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }"
REFUSED = {
    "objects": (saved(np.array([{}, None])), ["Python objects", "|O", "byte "]),
    "complex": (saved(np.zeros((2, 2), complex)), ["complex numbers", "astype"]),
    "dates": (saved(np.zeros(3, "M8[s]")), ["dates"]),
    "records": (saved(np.zeros(3, [("a", "f4"), ("b", "f4")])), ["records of several fields"]),
    "texts": (saved(np.array(["a", "b"])), ["texts", "CSV"]),
    "long doubles": (saved(np.zeros((2, 2), np.longdouble)), ["<f16", "not read"]),
    "infinite": (saved(np.array([[1, 2], [3, -np.inf]])), ["item 1, feature 1", "infinite", "byte 152"]),
    "beyond float32": (saved(np.array([[1e39, 0.0]])), ["item 0, feature 0", "range of float32"]),
    "a scalar": (saved(np.array(3.5)), ["single number"]),
    "no items": (saved(np.zeros((0, 4))), ["no items"]),
    "no features": (saved(np.zeros((4, 0))), ["dimension 1", "is 0"]),
    "version": (header(GOOD, bytes(8), 4), ["version 4.0", "byte 6"]),
    "cut in the header": (header(GOOD)[:40], ["ends inside its NPY header", "byte 40"]),
    "cut in the elements": (header(GOOD, bytes(7)), ["2 items of 1 features", "7 bytes follow"]),
    "too long": (header(GOOD, bytes(9)), ["9 bytes follow", "one array"]),
    "wrong key": (header(GOOD.replace("shape", "form")), ['"form"']),
    "a key twice": (header(GOOD.replace("fortran_order': False", "descr': '<f4'")), ['"descr"']),
    "a key less": (header("{'shape': (2, 1)}", bytes(8)), ["is missing"]),
    "no dictionary": (header("[]" + " " * 50), ["its dictionary is missing"]),
    "code": (header(GOOD.replace("False", "print(1)")), ["True or False"]),
    "negative": (header(GOOD.replace("2, 1", "-2, 1")), ["tuple"]),
    "too many items": (header(GOOD.replace("2, 1", "281474976710657, 1")), ["2^48"]),
    "too many features": (header(GOOD.replace("2, 1", "2, 65536, 65536")), ["2^32"]),
    "overflow": (header(GOOD.replace("2, 1", "281474976710656, 4294967295")), ["cut off"]),
    "long header": (header(" " * 70000, version=2), ["70000 bytes"]),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("packed", [False, True])
def test_refused(tmp_path, run_quern, case, packed):
    data, words = REFUSED[case]
    path = tmp_path / "bad.npy"
    path.write_bytes(gzip.compress(data) if packed else data)
    told = run_quern("data", "info", path, status=1).stderr
    for word in ["bad.npy, byte "] + (words if not packed or "follow" not in " ".join(words) else []):
        assert word in told, told
    assert len(told.strip().split("\n")) >= 3, told


LABELS = {
    "one less": (np.zeros(59, int), ["59 labels for 60 items"]),
    "NaN": (np.full(60, np.nan), ["item 0", "missing"]),
    "infinite": (np.full(60, np.inf), ["item 0", "infinite"]),
    "beyond 32 bits": (np.arange(60) + 2 ** 31, ["item 0", "2^31", "--task"]),
    "an empty text": (np.array(["a"] * 59 + [""]), ["item 59", "empty"]),
    "not UTF-8": (np.array([b"\xff"] * 60), ["UTF-8"]),
}


@pytest.mark.parametrize("case", LABELS)
def test_refused_labels(tmp_path, run_quern, case):
    labels, words = LABELS[case]
    np.save(tmp_path / "x.npy", np.ones((60, 2)))
    np.save(tmp_path / "y.npy", labels)
    told = run_quern("data", "info", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", status=1).stderr
    for word in ["y.npy, byte ", *words]:
        assert word in told, told


def test_one_hot_labels_are_noted(tmp_path, run_quern):
    """They are read as several labels of an item."""
    np.save(tmp_path / "x.npy", np.ones((6, 2)))
    for labels, noted in (np.eye(6), True), (np.ones((6, 2)), False), (np.eye(6)[:, :5], False):
        np.save(tmp_path / "y.npy", labels)
        done = run_quern("data", "info", tmp_path / "x.npy", "--labels", tmp_path / "y.npy")
        assert ("numpy.argmax" in done.stdout + done.stderr) == noted, done.stderr
    np.save(tmp_path / "y.npy", np.eye(6) * 2)
    told = run_quern("data", "info", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", status=1).stderr
    assert "a label is 2" in told and "item 0, label 0" in told


def test_refused_archives(tmp_path, run_quern):
    path = tmp_path / "a.npz"

    def refused(*words, name="a.npz"):
        told = run_quern("data", "info", tmp_path / name, status=1).stderr
        for word in words:
            assert word in told, told

    array = np.arange(4000).reshape(-1, 4)
    np.savez(path, one=array, two=array)
    refused("one, two", "FILE.npz:NAME")
    refused('no array "three"', "one, two", name="a.npz:three")
    refused("no such file", name="b.npz:x")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<a/>")
    refused("without NumPy arrays", "spreadsheet")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", saved(array))
    refused("method 12")
    np.savez(path, x=array)
    whole = bytearray(path.read_bytes())
    path.write_bytes(whole[:-30])
    refused("no list of entries")
    whole[300] ^= 1
    path.write_bytes(whole)
    refused("check sum", "entry x.npy")
    np.savez_compressed(path, x=array)
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\1\2") - 10] ^= 255
    path.write_bytes(whole)
    refused("entry x.npy")
    path.write_bytes(gzip.compress(bytes(whole)))
    refused("gunzip")
