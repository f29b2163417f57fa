"""Tables of pyarrow by the Arrow C Stream interface, against NumPy and against the same table as
CSV. src/data/arrow/arrow_test.c has tables built by hand; this one needs pyarrow, or is skipped."""

import ctypes
import io

import numpy as np
import pytest

import data_vectors
import python_package

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install pyarrow)")


@pytest.fixture(scope="module")
def read():
    """read(table, label_column=...) -> quern.Data; the table is anything with __arrow_c_stream__."""
    python_package.folder()
    import quern
    from quern import _abi, _library

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

    def take(table, **members):
        options = _abi.qn_data_options()
        _library.library().qn_data_options_init(options)
        for name, value in members.items():
            setattr(options, name, value.encode() if isinstance(value, str) else value)
        capsule = table.__arrow_c_stream__()
        stream = address(capsule, b"arrow_array_stream")
        return quern.Data._of(_library.new("qn_data_from_arrow", stream, options))

    return take


@pytest.fixture(scope="module")
def read_csv(tmp_path_factory):
    import quern

    def take(text, **members):
        path = tmp_path_factory.mktemp("csv") / "same.csv"
        path.write_text(text)
        return quern.open(path, **members)

    return take


def classes(data):
    """The names of classes."""
    from quern import _library
    library = _library.library()
    return [library.qn_data_class_name(data._address, k).decode() for k in range(data.classes)
            if library.qn_data_class_name(data._address, k)]


def columns(items=500, seed=1):
    draw = np.random.default_rng(seed)
    made = {name: draw.integers(np.iinfo(name).min, np.iinfo(name).max, items, name, endpoint=True)
            for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")}
    made["bool"] = draw.integers(0, 2, items).astype(bool)
    for name in "float16", "float32", "float64":
        made[name] = draw.normal(size=items).astype(name)
    return made


@pytest.mark.parametrize("parts", [1, 7, 500])
def test_numbers(read, parts):
    """Every type of numbers, in one part and in many, with slices that have offsets."""
    made = columns()
    table = pa.table({name: pa.array(values) for name, values in made.items()})
    cuts = np.linspace(0, 500, parts + 1).astype(int)
    table = pa.concat_tables([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:])])
    data = read(table, unlabelled=1)
    wanted = np.stack([values.astype("<f4") for values in made.values()], axis=1)
    wide = {k: found[0] for k, values in enumerate(made.values())
            if (found := data_vectors.wide_of(values[:, None]))}
    assert data.digest == data_vectors.digest_of(2, *wanted.shape, wanted.tobytes(), None, wide=wide)
    assert list(data.names) == list(made)


def test_missing(read):
    draw = np.random.default_rng(2)
    values, gone = draw.normal(size=(300, 3)).astype("<f4"), draw.random((300, 3)) < 0.2
    table = pa.table({f"c{k}": pa.array(values[:, k], mask=gone[:, k]) for k in range(3)})
    data = read(pa.concat_tables([table.slice(0, 101), table.slice(101, 3), table.slice(104)]),
                unlabelled=1)
    wanted = values.copy()
    wanted.view("<u4")[gone] = 0x7FC00000
    assert data.digest == data_vectors.digest_of(2, 300, 3, wanted.tobytes(), None)


def texts(kind, values):
    if kind == "dictionary":
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, {"utf8": pa.string(), "large": pa.large_string(),
                             "view": pa.string_view()}[kind])


@pytest.mark.parametrize("kind", ["utf8", "large", "view", "dictionary"])
@pytest.mark.parametrize("label", ["kind", "rank", "price"])
def test_same_as_csv(read, read_csv, kind, label):
    """Categories, classes and targets are those of the table that pyarrow writes as CSV."""
    from pyarrow import csv
    names = ["Zürich", "Bern", "a name of more than twelve bytes", None]

    def make(kind):
        draw = np.random.default_rng(3)
        return pa.table({
            "city": texts(kind, [names[i] for i in draw.integers(0, 4, 200)]),
            "kind": texts(kind, [["b", "a", "C"][i] for i in draw.integers(0, 3, 200)]),
            "rank": pa.array(draw.integers(-1, 3, 200)),
            "price": pa.array(draw.normal(size=200).round(3)),
        })

    table, written = make(kind), io.BytesIO()
    csv.write_csv(make("utf8"), written)
    parts = pa.concat_tables([table.slice(0, 77), table.slice(77)])
    data = read(parts, label_column=label)
    same = read_csv(written.getvalue().decode(), label=label)
    assert data.digest == same.digest
    assert list(data.names) == list(same.names)
    assert classes(data) == classes(same)


@pytest.mark.parametrize("column, words", [
    (pa.array([1, 10**15], pa.timestamp("s")), ["year 9999", "item 1"]),
    (pa.array([[1], [2]]), ["lists"]),
    (pa.array([b"a", b"\xff"]), ["UTF-8", "item 1"]),
    (pa.array([1.0, float("inf")]), ["infinite", "item 1"])])
def test_refused(read, column, words):
    with pytest.raises(Exception) as told:
        read(pa.table({"odd": column, "y": pa.array([0, 1])}), label_column="y")
    for word in [*words, "odd"]:
        assert word in str(told.value), told.value


def test_other_programs(read):
    """What pandas and polars export themselves."""
    draw = np.random.default_rng(4)
    values = draw.normal(size=(50, 2)).astype("<f4")
    wanted = data_vectors.digest_of(2, 50, 2, values.tobytes(), None)
    pandas = pytest.importorskip("pandas")
    if hasattr(pandas.DataFrame, "__arrow_c_stream__"):
        assert read(pandas.DataFrame(values, columns=["a", "b"]), unlabelled=1).digest == wanted
    polars = pytest.importorskip("polars")
    assert read(polars.DataFrame(values, schema=["a", "b"]), unlabelled=1).digest == wanted
    kinds = polars.DataFrame({"t": ["x", "yes, this is a long text"] * 25, "v": range(50)})
    assert classes(read(kinds, label_column="t")) == ["x", "yes, this is a long text"]
    kinds = kinds.with_columns(polars.col("t").cast(polars.Categorical))
    assert classes(read(kinds, label_column="t")) == ["x", "yes, this is a long text"]
