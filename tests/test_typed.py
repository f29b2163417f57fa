"""Files of tables with types: Arrow IPC and Parquet. The samples in tests/fuzz/corpus/typed were written by
pyarrow from the table below; with pyarrow and polars installed, more is written and compared."""

import json

import numpy as np
import pytest

from builds import ROOT

SAMPLES = ROOT / "tests" / "fuzz" / "corpus" / "typed"
# The table of the samples: columns y (int64), a (int8), u (uint16), f (float32), g (float64), b
# (bool), s (utf8), d (dictionary of utf8); an empty cell is null.
CSV = """y,a,u,f,g,b,s,d
0,-3,7,0.5,0.1,1,red,x
1,,65535,-1.25,,0,green,yy
2,127,0,3,1e-3,,,x
1,-128,300,0.0625,12345.678,1,"blue, and a long text",
0,0,1,1e10,-7,0,red,x
2,5,2,-0.0,0.25,1,green,yy
1,1,3,2.5,1e20,,"",zzz
"""
ROWS = [  # of SAMPLES, and of what is written below
    (0, -3, 7, 0.5, 0.1, True, "red", "x"),
    (1, None, 65535, -1.25, None, False, "green", "yy"),
    (2, 127, 0, 3.0, 1e-3, None, None, "x"),
    (1, -128, 300, 0.0625, 12345.678, True, "blue, and a long text", None),
    (0, 0, 1, 1e10, -7.0, False, "red", "x"),
    (2, 5, 2, -0.0, 0.25, True, "green", "yy"),
    (1, 1, 3, 2.5, 1e20, None, "", "zzz"),
]


def table():
    pa = pytest.importorskip("pyarrow")
    types = [pa.int64(), pa.int8(), pa.uint16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(),
             pa.dictionary(pa.int32(), pa.string())]
    return pa.table([pa.array(c, t) for c, t in zip(zip(*ROWS), types)], names=list("yaufgbsd"))


@pytest.fixture
def info(run_quern):
    def ask(path, *more):
        return json.loads(run_quern("data", "info", path, "--json", *more).stdout)
    return ask


@pytest.fixture
def refused(run_quern):
    def ask(path, *more):
        return run_quern("data", "info", path, *more, status=1).stderr
    return ask


@pytest.fixture
def wanted(tmp_path, info):
    (tmp_path / "table.csv").write_text(CSV)
    return info(tmp_path / "table.csv")


def test_samples(info, wanted):
    """The digest is that of the same table as CSV."""
    samples = [s for s in SAMPLES.iterdir() if s.name.startswith("table")]
    assert len(samples) >= 7
    for sample in samples:
        told = info(sample)
        assert told["format"] == sample.suffix[1:]
        for key in "digest", "table", "label", "counts", "features":
            assert told[key] == wanted[key], (sample, key)


def test_columns(info, tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    for sample in SAMPLES.glob("table-*"):
        for more in (["--features", "a,g", "--label", "f"], ["--drop", "s,last", "--weight", "u"],
                     ["--label", "u", "--task", "regress", "--category", "a"]):
            told, csv = info(sample, *more), info(tmp_path / "t.csv", *more)
            assert told["digest"] == csv["digest"] and told["table"] == csv["table"], (sample, more)


def test_pyarrow_ipc(info, wanted, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "t.arrow"
    whole = table()
    for cast in {}, {"s": pa.large_string()}, {"s": pa.string_view()}, {"a": pa.int64(), "u": pa.uint64()}:
        t = whole
        for name, kind in cast.items():
            i = t.column_names.index(name)
            t = t.set_column(i, name, t[name].cast(kind))
        for open_, packed in (pa.ipc.new_file, "lz4"), (pa.ipc.new_stream, "zstd"), (pa.ipc.new_stream, None):
            with open_(path, t.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as writer:
                writer.write_table(t, max_chunksize=3)
            assert info(path)["digest"] == wanted["digest"]


def test_polars_ipc(info, wanted, tmp_path):
    pl = pytest.importorskip("polars")
    path = tmp_path / "t.arrow"
    t = pl.from_arrow(table())
    t.write_ipc(path, compression="lz4")
    assert info(path)["digest"] == wanted["digest"]
    t.write_ipc_stream(path, compression="zstd")
    assert info(path)["digest"] == wanted["digest"]


def test_pyarrow_parquet(info, wanted, tmp_path):
    """All codecs, encodings and versions of pages."""
    pytest.importorskip("pyarrow")
    from pyarrow import parquet
    path = tmp_path / "t.parquet"
    deltas = {"y": "DELTA_BINARY_PACKED", "a": "DELTA_BINARY_PACKED", "f": "BYTE_STREAM_SPLIT", "b": "RLE",
              "s": "DELTA_BYTE_ARRAY", "d": "DELTA_LENGTH_BYTE_ARRAY", "u": "BYTE_STREAM_SPLIT"}
    for more in ({"compression": "none", "row_group_size": 2}, {"compression": "gzip", "data_page_version": "2.0"},
                 {"compression": "lz4", "use_dictionary": False}, {"compression": "snappy", "data_page_size": 1},
                 {"compression": "zstd", "use_dictionary": False, "column_encoding": deltas},
                 {"use_dictionary": False, "column_encoding": deltas, "data_page_version": "2.0"}):
        parquet.write_table(table(), path, **more)
        assert info(path)["digest"] == wanted["digest"], more


def test_many_rows(info, tmp_path):
    """Runs and packed groups of every width, pages with gaps, texts inside and outside views, all threads."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet
    rng, n = np.random.default_rng(3), 40003
    columns = {"y": rng.integers(0, 2, n)}
    for bits in range(1, 25, 3):
        columns[f"n{bits}"] = [None if i % (bits + 2) == 0 else v << 10
                               for i, v in enumerate(map(int, rng.integers(0, 1 << bits, n)))]
    columns["runs"] = [i // 700 for i in range(n)]
    columns["texts"] = [None if i % 9 == 0 else f"{i % 31} and more"[: i % 17 + 1] for i in range(n)]
    t = pa.table(columns)
    with pa.ipc.new_file(tmp_path / "t.arrow", t.schema) as writer:
        writer.write_table(t)
    wanted = info(tmp_path / "t.arrow")
    for more in {"data_page_size": 3000}, {"row_group_size": 9999, "use_dictionary": False, "data_page_version": "2.0"}:
        parquet.write_table(t, tmp_path / "t.parquet", **more)
        assert (tmp_path / "t.parquet").stat().st_size > 1 << 19  # smaller files are read by one thread
        told = info(tmp_path / "t.parquet")
        assert told["digest"] == wanted["digest"] and told["table"] == wanted["table"]


def test_polars_parquet(info, wanted, tmp_path):
    pl = pytest.importorskip("polars")
    pl.from_arrow(table()).write_parquet(tmp_path / "t.parquet", compression="zstd")
    assert info(tmp_path / "t.parquet")["digest"] == wanted["digest"]


def test_nested_parquet(info, refused):
    sample = SAMPLES / "nested.parquet"
    assert "the column holds lists" in refused(sample) and "column 2, l" in refused(sample)
    assert info(sample, "--features", "v,n", "--unlabelled")["features"] == 2


def test_types_that_are_not_read(info, refused, tmp_path):
    """They are refused by name, with what helps, or left out."""
    pa = pytest.importorskip("pyarrow")
    t = table()
    kinds = {
        "lists": (pa.array([[1, 2]] * 7), "lists", 't.pop("lists")'),
        "records": (pa.array([{"a": 1, "b": ["x"]}] * 7), "records with fields", "table.flatten()"),
        "pairs": (pa.array([[("k", 1)]] * 7, pa.map_(pa.string(), pa.int8())), "maps", "json_normalize"),
        "ids": (pa.array([bytes(16)] * 7, pa.uuid()), "UUIDs", "--drop"),
        "runs": (pa.RunEndEncodedArray.from_arrays(pa.array([7], pa.int32()), pa.array([1])), "runs", "run_end_decode"),
        "pieces": (pa.array([b"123"] * 7, pa.binary(3)), "bytes of a fixed length", "convert"),
    }
    for name, (array, _, _) in kinds.items():
        t = t.add_column(3, name, array)
    path = tmp_path / "t.arrow"
    with pa.ipc.new_file(path, t.schema) as writer:
        writer.write_table(t)
    names = list(kinds)[::-1]
    for i, name in enumerate(names):
        told = refused(path, *(["--drop", ",".join(names[:i])] if i else []))
        for word in f"the column holds {kinds[name][1]}", f"column 4, {name}" if i == 0 else name, kinds[name][2], "--drop":
            assert word in told, told
    assert info(path, "--drop", ",".join(names))["features"] == 7


def test_decimals_and_bytes(info, tmp_path):
    """Of all widths, in IPC and Parquet, what their texts are in CSV; texts as bytes; numbers in dictionaries."""
    pa = pytest.importorskip("pyarrow")
    import decimal
    from pyarrow import parquet
    with decimal.localcontext(decimal.Context(prec=80)):
        texts = ["1.50", "", "-2.25", "1677721.99", "0.00", "-1234567.89"]
        numbers = [decimal.Decimal(t) if t else None for t in texts]
        large = [decimal.Decimal(t) for t in ("16777217.000000000000000001", "-0.000000000000000001",
                                              "98765432109876543210.000000000000000000", "0.100000000000000000",
                                              "-16777219.000000000000000001", "3.000000000000000000")]
        columns = {"y": pa.array([0, 1] * 3), "d1": pa.array(numbers, pa.decimal32(9, 2)),
                   "d2": pa.array(numbers, pa.decimal64(18, 2)), "d3": pa.array(numbers, pa.decimal128(38, 2)),
                   "d4": pa.array(numbers, pa.decimal256(50, 2)), "d5": pa.array(large, pa.decimal128(38, 18)),
                   "d6": pa.array(large, pa.decimal256(60, 18)),
                   "b": pa.array([t.encode() or None for t in texts], pa.large_binary()),
                   "c": pa.array([5, None, 7, 5, 300, 7]).dictionary_encode()}
    rows = ["y,d1,d2,d3,d4,d5,d6,b,c"]
    for i, text in enumerate(texts):
        rows.append(f"{i % 2},{text},{text},{text},{text},{large[i]:f},{large[i]:f},{text},{columns['c'][i].as_py() or ''}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    t = pa.table(columns)
    with pa.ipc.new_file(tmp_path / "t.arrow", t.schema) as writer:
        writer.write_table(t, max_chunksize=4)
    parquet.write_table(t, tmp_path / "t.parquet", write_page_checksum=True, store_decimal_as_integer=True)
    for words in ["--category", "b"], ["--category", "b,d3", "--label", "d1", "--task", "regress"]:
        if "regress" in words: # a missing label is refused
            words = [*words[:3], "d5", *words[4:]]
        wanted = info(tmp_path / "t.csv", *words)
        for name in "t.arrow", "t.parquet":
            told = info(tmp_path / name, *words)
            assert told["digest"] == wanted["digest"] and told["table"] == wanted["table"], (name, words)


def test_exact_decimals_and_dictionaries(info, tmp_path):
    """Whole numbers of a decimal type or in a dictionary are kept exactly; others are the nearest doubles."""
    pa = pytest.importorskip("pyarrow")
    import decimal
    from pyarrow import parquet
    draw = np.random.default_rng(3)
    ids = [int(v) for v in draw.integers(-2**62, 2**62, 40)]
    seconds = [decimal.Decimal(17 * 10**12 + int(v)).scaleb(-4) for v in draw.integers(0, 10**6, 40)]
    large = [decimal.Decimal(10**19 + v) for v in ids]
    plain = {"y": pa.array([0, 1] * 20), "id": pa.array(ids), "code": pa.array(ids), "t": pa.array(map(float, seconds)),
             "u": pa.array(map(float, seconds)), "large": pa.array([float(np.float32(int(v))) for v in large])}
    exact = plain | {"id": pa.array(map(decimal.Decimal, ids), pa.decimal128(38, 0)), "code": plain["code"].dictionary_encode(),
                     "t": pa.array(seconds, pa.decimal64(18, 4)), "large": pa.array(large, pa.decimal128(25, 0)),
                     "u": pa.array([v + decimal.Decimal(1).scaleb(-30) for v in seconds], pa.decimal256(50, 30))}
    for name, columns in ("plain", plain), ("exact", exact):
        parquet.write_table(pa.table(columns), tmp_path / name, row_group_size=9)
    wanted, told = info(tmp_path / "plain"), info(tmp_path / "exact")
    assert told["digest"] == wanted["digest"] and told["table"][:-1] == wanted["table"][:-1]
    assert told["table"][0]["min"] == min(ids) and told["table"][2]["max"] == max(map(float, seconds))


def test_damage(refused, tmp_path):
    """Cut files and other bytes are refused with their place; nothing crashes."""
    for sample in SAMPLES.glob("table*"):
        data, path = sample.read_bytes(), tmp_path / sample.name
        for end in range(8, len(data) - 8, max(1, len(data) // 5)):
            path.write_bytes(data[:end])
            told = refused(path)
            assert sample.name in told and "byte" in told, told


def test_other_refusals(refused, tmp_path):
    sample = next(SAMPLES.glob("table*"))
    assert "--header" in refused(sample, "--header", "no")
    assert "no column" in refused(sample, "--drop", "nothing")
    (tmp_path / "v1").write_bytes(b"FEA1" + bytes(40))
    assert "Feather file of version 1" in refused(tmp_path / "v1")


def test_train_and_predict(run_quern, tmp_path):
    """The same model, and the same predictions, as from CSV."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 200, (60, 4))
    text = "y,a,b,c,d\n" + "".join(f"{r[0] % 3},{','.join(map(str, r))}\n" for r in rows)
    (tmp_path / "t.csv").write_text(text)
    pa = pytest.importorskip("pyarrow")
    columns = [rows[:, 0] % 3, *rows.T]
    t = pa.table([pa.array(c.astype("i4")) for c in columns], names=list("yabcd"))
    from pyarrow import parquet
    parquet.write_table(t, tmp_path / "t.parquet")
    outputs = []
    for data in "t.csv", "t.parquet":
        run_quern("train", "--data", tmp_path / data, "--epochs", "1", "--threads", "1", "-o", tmp_path / "m")
        run_quern("predict", tmp_path / "m", "--data", tmp_path / data, "-o", tmp_path / "p")
        outputs.append((tmp_path / "p").read_bytes())
    assert outputs[0] == outputs[1] and len(outputs[0]) > 100
