"""Several files as one table: the oracle is the one file that they were cut from."""

import gzip
import json
import random
import subprocess

import numpy as np
import pytest

import parquet_writer
import ranks

NAMES = ["y", "size", "colour", "count", "code"]


@pytest.fixture
def info(run_quern):
    """What `data info --json` tells of files, by the table alone."""
    def tell(*words, **more):
        told = json.loads(run_quern("data", "info", *words, "--json", **more).stdout)
        return {key: value for key, value in told.items() if key not in ("file", "format", "note")}
    return tell


@pytest.fixture
def refused(run_quern):
    def tell(*words, **more):
        return run_quern("data", "info", *words, status=1, **more).stderr
    return tell


def line(cells):
    return ",".join('"' + cell.replace('"', '""') + '"' if set(cell) & set(',"') else cell
                    for cell in cells) + "\n"


def write(path, lines, packed=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def table(seed, count):
    """Columns whose type depends on all rows: the last ones are what makes it."""
    draw = random.Random(seed)
    rows = [[draw.choice("ab"), str(draw.randrange(256)), draw.choice(["red", "blue, dark", 'x"y']),
             draw.choice(["", "NA", "3", "17"]), str(draw.randrange(100))] for _ in range(count)]
    rows[-1][1] = draw.choice(["7", "0.25", "-1", "20230119"])
    rows[-1][4] = draw.choice(["7", "none", "1e3"])
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_parts_of_one_file(tmp_path, info, run_quern, seed):
    """Headers in all parts, in the first, or in none; columns in any order; empty parts."""
    draw = random.Random(100 + seed)
    rows = table(seed, draw.choice([5, 40, 300]))
    headers = ("all", "first", "none", "order")[seed % 4]
    whole = write(tmp_path / "whole.csv", [line(NAMES)] * (headers != "none") + list(map(line, rows)))
    cuts = sorted(draw.choices(range(len(rows) + 1), k=draw.randrange(1, 6)))
    for i, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)])):
        order = list(range(5))
        if headers == "order" and i > 0:
            draw.shuffle(order)
        head = headers in ("all", "order") or (headers == "first" and i == 0)
        part = [line([row[k] for k in order]) for row in [NAMES] * head + rows[begin:end]]
        if part:
            write(tmp_path / "parts" / f"p{i}", part, packed=draw.random() < 0.3)
    assert info(tmp_path / "parts") == info(whole)
    told = run_quern("data", "convert", whole, "-o", "-", "--format", "csv").stdout
    listed = sorted((tmp_path / "parts").iterdir())
    assert run_quern("data", "convert", *listed, "-o", "-", "--format", "csv").stdout == told
    assert run_quern("data", "convert", str(tmp_path / "parts" / "p*"), "-o", "-", "--format", "csv").stdout == told


def test_a_model_is_that_of_the_whole(tmp_path, quern, run_quern):
    """Also on ranks, by a list, and in the recipe."""
    rows = list(map(line, table(3, 200)))
    whole = write(tmp_path / "whole.csv", [line(NAMES), *rows])
    for i in range(4):
        write(tmp_path / "d" / f"{i}.csv", [line(NAMES), *rows[50 * i:50 * i + 50]])
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbf# the files\r\nd/0.csv\r\n\r\nd/[12].csv\r\nd/3.csv")
    train = ["train", "--epochs", "2", "--quiet", "--valid", "0.2", "--missing", "mean"]
    ways = {"whole": ["--data", whole], "folder": ["--data", tmp_path / "d"],
            "pattern": ["--data", tmp_path / "**" / "?.csv"],
            "list": ["--data", f"@{tmp_path}/list.txt"],
            "often": [word for i in range(4) for word in ("--data", tmp_path / "d" / f"{i}.csv")]}
    for name, words in ways.items():
        run_quern(*train, *words, "-o", tmp_path / name)
    ranks.run(quern, 2, *train, *ways["pattern"], "-o", tmp_path / "ranks")
    assert len({(tmp_path / name).read_bytes() for name in [*ways, "ranks"]}) == 1
    assert "identical" in run_quern("replay", tmp_path / "whole", "--data", tmp_path / "d").stdout
    told = [run_quern("predict", tmp_path / "folder", "--data", path, "-o", "-").stdout
            for path in (whole, tmp_path / "d")]
    assert told[0] == told[1]


def test_order(tmp_path, run_quern):
    """A folder by path, bytewise; arguments in their order; a pattern has its own order."""
    for name in ("a/2", "a-b", "a/10", "B", "_SUCCESS", ".hidden", "x.crc"):
        write(tmp_path / "d" / name, [f"{len(name)},{ord(name[-1])}\n"] if name[0] not in "_." else ["?"])

    def rows(*words):
        text = run_quern("data", "convert", *words, "-o", "-", "--format", "csv", cwd=tmp_path / "d").stdout
        return [row.split(",")[1] for row in text.split()[1:]]

    assert rows(".") == [str(ord(name[-1])) for name in ("B", "a-b", "a/10", "a/2")]
    assert rows("a/2", "B", "a/10") == [str(ord(c)) for c in "2B0"]
    assert rows("**") == rows(".") == rows("**/*")
    assert rows("a*/*", "[!a_]") == [str(ord(c)) for c in "02B"]
    write(tmp_path / "d" / "[a]", ["3,200\n"])
    assert rows("[a]") == ["200"]  # a file that is there is no pattern
    write(tmp_path / "d" / "@x", ["3,201\n"])
    assert rows("./@x") == ["201"]


def test_folders_are_columns(tmp_path, info, run_quern):
    rows = list(map(line, table(5, 40)))
    places = ["year=2025/country=a%20b", "year=2025/country=__HIVE_DEFAULT_PARTITION__",
              "year=2026/country=7"]
    cuts = [(0, 10), (10, 11), (11, 40)]
    whole = [line(NAMES + ["year", "country"])]
    for place, (begin, end) in zip(places, cuts):
        write(tmp_path / "lake" / place / "part-0.csv", [line(NAMES), *rows[begin:end]])
        year, country = place.split("/")
        tail = f",{year[5:]},{country[8:].replace('%20', ' ').replace('__HIVE_DEFAULT_PARTITION__', '')}\n"
        whole += [row[:-1] + tail for row in rows[begin:end]]
    write(tmp_path / "whole.csv", whole)
    told = info(tmp_path / "whole.csv", "--category", "country")
    files = sorted((tmp_path / "lake").rglob("*.csv"))
    files = [files[i] for i in (1, 0, 2)]  # "_" stands before "a"
    assert info(*files) == told
    assert info(str(tmp_path / "lake" / "year=*"), "--label", "year") != told
    assert info(tmp_path / "lake" / "year=2026")["features"] == told["features"] - 1
    assert info(files[0])["features"] == told["features"] - 2  # one file is what it always was
    write(tmp_path / "lake" / places[0] / "part-1.csv", [line(NAMES + ["year"]), rows[0][:-1] + ",1\n"])
    assert "part-1.csv" in run_quern("data", "info", tmp_path / "lake", status=1).stderr
    for path in files:
        path.unlink()
    done = run_quern("data", "info", tmp_path / "lake")
    assert '"year" is read from the files' in done.stderr


BAD = {  # parts, then what the message says
    "missing": (["a,b,c\n1,2,3\n", "a,c\n1,2\n"], ['the column "b" of the first file is missing', "p1, line 1", "--drop"]),
    "additional": (["a,b\n1,2\n", "a,b,x\n1,2,3\n"], ['the column "x" is not in the first file', "p1, line 1"]),
    "case": (["a,b\n1,2\n", "A,B\n1,2\n"], ['the column "A" is not in the first file', "p1, line 1"]),
    "twice": (["a,b\n1,2\n", "b,b\n1,2\n"], ['the column "b" is in the file twice', "p1, line 1"]),
    "cell": (["a,b\n1,2\n3,4\n", "b,a\n1,2\n5,1\nx,1\n"], ['"x" is not a number', "p1, line 4, column 1 (b)"]),
    "ragged": (["a,b\n1,2\n", "a,b\n1,2\n\n1,2,3\n", "a,b\n1,2\n"], ["the line is empty", "p1, line 3"]),
    "short": (["a,b,c,d\n1,2,3,4\n", "1,2,3,4\n\n\n\n\n\n\n\n\n\n1\n"], ["the line is empty", "p1, line 2"]),
    "separator": (["a,b\n1,2\n", "a;b\n1;2\n"], ["separated in another way", "p1, line 1"]),
    "format": (["a,b\n1,2\n", '{"a": 1, "b": 2}\n'], ["the file has the format json, and the first one has the format csv", "p1"]),
    "empty": (["a,b\n1,2\n", ""], ["the file is empty", "p1"]),
    "headers": (["a,b\n", "a,b\n"], ["a header and no items", "p0"]),
    "reordered": (["a,b\n", "b,a\n"], ["a header and no items", "p0"]),
    "binary": (["a,b\n1,2\n", "a,\0\n1,2\n"], ["not text", "p1"]),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(tmp_path, refused, name):
    parts, words = BAD[name]
    for i, text in enumerate(parts):
        write(tmp_path / f"p{i}", [text])
    told = refused(*sorted(tmp_path.iterdir()))
    assert all(word in told for word in words), told


def test_choice_of_columns(tmp_path, info, refused):
    write(tmp_path / "a", ["a,b,c\n", "1,2,3\n", "0,9,8\n"])
    write(tmp_path / "b", ["d,c,a\n", "5,7,1\n"])
    write(tmp_path / "whole.csv", ["a,c\n", "1,3\n", "0,8\n", "1,7\n"])
    assert info(tmp_path / "a", tmp_path / "b", "--features", "c") == info(tmp_path / "whole.csv")
    assert '"d" is not in the first' in refused(tmp_path / "a", tmp_path / "b", "--drop", "b")


def test_arguments(tmp_path, refused, run_quern):
    write(tmp_path / "a.csv", ["a,b\n", "1,2\n"])
    write(tmp_path / "k=1" / "x=2" / "f.csv", ["a,b\n", "1,2\n"])
    write(tmp_path / "k=1" / "g.csv", ["a,b\n", "1,2\n"])
    assert "no file has a path" in refused(str(tmp_path / "z*"))
    (tmp_path / "link").symlink_to("a.csv")
    told = run_quern("data", "info", tmp_path / "a.csv", tmp_path / "link").stderr
    assert f"the file {tmp_path}/link is named twice" in told
    assert 'a folder above the file has the key "x"' in refused(str(tmp_path / "k=?" / "**" / "*.csv"))
    assert "alone" in refused(tmp_path / "a.csv", "-", input="")
    (tmp_path / "l").write_text("a.csv\n@l\n")
    assert "line 2" in refused(f"@{tmp_path}/l")
    (tmp_path / "l").write_text("# none\n")
    assert "names no file" in refused(f"@{tmp_path}/l")
    (tmp_path / "l").write_text("missing.csv\na.csv\n")
    assert f"{tmp_path}/missing.csv" in refused(f"@{tmp_path}/l")
    told = run_quern("train", "--data", tmp_path / "a.csv", "--valid", "0.1", "--valid", "0.2", "-o",
                     tmp_path / "m", status=2).stderr
    assert "--valid is a fraction" in told


def columns(seed, count):
    draw = np.random.default_rng(seed)
    return {"y": draw.integers(0, 3, count).astype("i4"), "size": draw.integers(0, 200, count).astype("i4"),
            "name": [f"n{k % 7}" for k in range(count)], "value": draw.random(count).astype("f4"),
            "id": draw.integers(2**30, 2**40, count).astype("i8")}


def test_typed_files(tmp_path, info, refused, run_quern):
    """Parquet: the types of a column differ from file to file, and so does the order of columns."""
    whole = columns(1, 700)
    cuts, wide = [0, 90, 91, 400, 700], {"size": ["i4", "i8", "i4", "i8"], "value": ["f4", "f4", "f8", "f4"]}
    for i, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        part = {name: whole[name][begin:end] for name in list(whole)[i:] + list(whole)[:i]}
        for name, types in wide.items():
            part[name] = part[name].astype(types[i])
        (tmp_path / "d" / f"k={i // 2}").mkdir(parents=True, exist_ok=True)
        parquet_writer.write(tmp_path / "d" / f"k={i // 2}" / f"{i}.parquet", part, 64)
        if i == 2:
            wrong = {"ten": part | {"size": [str(v) for v in part["size"]]}, "more": part | {"x": part["y"]},
                     "less": {name: part[name] for name in ("y", "name", "value", "id")}}
    keys = {"k": np.array([0] * 91 + [1] * 609, "i8")}
    parquet_writer.write(tmp_path / "whole", whole | {"value": whole["value"].astype("f8")} | keys, 100)
    assert info(tmp_path / "d", "--label", "y") == info(tmp_path / "whole")
    for column in ("k", "size", "value", "name"):
        words = ["--label", column, "--drop", "id"]
        assert info(tmp_path / "d", *words) == info(tmp_path / "whole", *words)
    run_quern("data", "convert", tmp_path / "d", "-o", tmp_path / "a.csv", "--label", "y")
    run_quern("data", "convert", tmp_path / "whole", "-o", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    first = (tmp_path / "d" / "k=0" / "0.parquet").rename(tmp_path / "first")
    for name, said in [("ten", '"size" has another type than in the files before'), ("more", '"x" is not in the first'),
                       ("less", '"size" of the first file is missing')]:
        parquet_writer.write(tmp_path / name, wrong[name], 64)
        told = refused(first, tmp_path / name)
        assert said in told and str(tmp_path / name) in told, told
    same = info(first, tmp_path / "less", "--drop", "size", "--label", "y")
    assert same == info(first, tmp_path / "ten", "--drop", "size", "--label", "y")
    assert same["digest"] == info(first, tmp_path / "more", "--features", "name,value,id", "--label", "y")["digest"]
    assert "the format csv, and the first one has the format parquet" in refused(first, tmp_path / "a.csv")


def test_a_header_alone(tmp_path, info, refused):
    """The first file has no row, and all others have their columns in another order."""
    rows = [["1", "x", "2.5"], ["3", "z", "4"]]
    whole = write(tmp_path / "whole.csv", [line(["a", "b", "c"]), *map(line, rows)])
    files = [write(tmp_path / "0.csv", ["a,b,c\n"])]
    files += [write(tmp_path / f"{i}.csv", ["c,a,b\n", line([row[2], *row[:2]])], packed=i == 2)
              for i, row in enumerate(rows, 1)]
    for words in ([], ["--label", "b"], ["--header", "yes"]):
        assert info(*files, *words) == info(whole, *words)
    assert 'no label column "b"' in refused(*files, "--label", "b", "--header", "no")


def test_joined_types(tmp_path, info):
    """Decimals of several widths, timestamps of several units, and a column of nulls, beside one CSV file."""
    ids = np.array([20230109, -7, 10**17 + 1, 20230119, 4, 5], "i8")
    stamps = np.array([0, 1, 10**12, 1000, 2000, -86400001], "i8")  # in milliseconds
    digits = {"id": {6: parquet_writer.DECIMAL, 7: 0, 8: 18}}
    for name, begin, end, types, unit in ("0", 0, 3, "i8", 1), ("1", 3, 6, "i4", 1000):
        part = {"y": np.arange(begin, end, dtype="i4"), "id": ids[begin:end].astype(types), "t": stamps[begin:end] * unit,
                "n": np.arange(begin, end, dtype="i4"), "late": [f"w{k}" for k in range(3)] if begin else np.zeros(3, "i4")}
        nulls = {"n": parquet_writer.NULL_TYPE} if begin else {"late": parquet_writer.NULL_TYPE}
        parquet_writer.write(tmp_path / f"{name}.parquet", part, 2, {"t": parquet_writer.TIMESTAMP_MILLIS + begin // 3}, digits | nulls)
    times = [f"{np.datetime64(int(v), 'ms')}Z" for v in stamps]
    rows = [f"{k},{ids[k]},{times[k]},{k if k < 3 else ''},{f'w{k - 3}' if k > 2 else ''}\n" for k in range(6)]
    write(tmp_path / "whole.csv", ["y,id,t,n,late\n", *rows])
    assert info(tmp_path / "*.parquet", "--label", "y") == info(tmp_path / "whole.csv")


def test_common_types(tmp_path, info, refused):
    """pyarrow: decimals, dates, times, dictionaries and nulls whose types differ between files."""
    pa = pytest.importorskip("pyarrow")
    from datetime import datetime, timedelta
    from decimal import Decimal
    from pyarrow import feather, parquet
    days = [datetime(1999 + k, 1 + k, 3) for k in range(6)]
    times = [day + timedelta(microseconds=1500000 * k) for k, day in enumerate(days)]
    ids, prices = [Decimal(10**17 * k - 3) for k in range(6)], [Decimal(k * 10**8 + 7).scaleb(-2) for k in range(6)]
    kinds = {  # the values, and the types of two files
        "y": (["a", "b"] * 3, pa.string(), pa.null()), "id": (ids, pa.decimal128(20, 0), pa.decimal256(40, 0)),
        "whole": ([int(v) for v in ids], pa.decimal128(19, 0), pa.int64()), "price": (prices, pa.decimal64(15, 2), pa.decimal128(20, 2)),
        "day": ([d.date() for d in days], pa.date32(), pa.date64()), "time": (times, pa.timestamp("ns"), pa.timestamp("us")),
        "mixed": (days, pa.date32(), pa.timestamp("s")), "zone": (times, pa.timestamp("us", "UTC"), pa.timestamp("ns", "Asia/Tokyo")),
        "double": ([0.1 * k + 1e9 for k in range(6)], pa.dictionary(pa.int8(), pa.float64()), pa.float64()),
        "late": (times, pa.null(), pa.timestamp("ms")), "code": ([str(k % 2) for k in range(6)], pa.dictionary(pa.int8(), pa.string()), pa.string())}

    def array(name, values, kind):
        if pa.types.is_null(kind):
            return pa.nulls(len(values))
        if pa.types.is_dictionary(kind):
            return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
        return pa.array([int(v) for v in values] if kind == pa.int64() else values, kind)

    def table(begin, end, side):
        return pa.table({name: array(name, values[begin:end], types[side]) for name, (values, *types) in kinds.items()})

    names = list(kinds)
    rows = [line(names)]
    for k in range(6):
        cells = {name: str(values[k]) for name, (values, *_) in kinds.items()}
        stamps = {name: times[k].isoformat(timespec="microseconds") for name in ("time", "zone", "late")}
        cells |= stamps | {"zone": stamps["zone"] + "Z", "mixed": days[k].isoformat(), "code": f"c{cells['code']}"}
        cells["late"] *= k >= 3
        cells["double"] = ""
        rows.append(line([cells[name] for name in names]))
    write(tmp_path / "whole.csv", rows)
    kinds["code"] = ([f"c{v}" for v in kinds["code"][0]], *kinds["code"][1:])
    for ending, put in [("parquet", parquet.write_table), ("arrow", feather.write_feather)]:
        d = tmp_path / ending
        d.mkdir()
        put(table(0, 3, 0), d / f"0.{ending}")
        put(table(3, 3, 1), d / f"1.{ending}")  # its y is null
        put(table(3, 6, 1).set_column(0, "y", pa.array(["b", "a", "b"])), d / f"2.{ending}")
        assert info(d, "--drop", "double")["digest"] == info(tmp_path / "whole.csv", "--drop", "double")["digest"]
        assert info(d, "--features", "double", "--label", "y")["table"][0]["max"] == 1e9 + 0.5
    stamps = [pa.table({"y": [1, 0], "t": pa.array(times[:2], pa.timestamp("us", zone))}) for zone in (None, "UTC")]
    for i, part in enumerate(stamps):
        parquet.write_table(part, tmp_path / f"{i}.parquet")
    assert '"t" has another type than in the files before' in refused(tmp_path / "0.parquet", tmp_path / "1.parquet")


def test_a_broken_part_is_named(tmp_path, refused):
    for i in range(12):
        parquet_writer.write(tmp_path / f"{i:02}", columns(i, 50), 20)
    broken = tmp_path / "07"
    text = broken.read_bytes()
    broken.write_bytes(text[:200] + bytes(100) + text[300:])
    assert f"at {broken}, byte " in refused(tmp_path)
    broken.write_bytes(text)
    parquet_writer.write(broken, columns(7, 50) | {"value": np.full(50, np.inf, "f4")}, 20)
    assert f"at {broken}, item 0, column 4, value" in refused(tmp_path)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    return head + array.tobytes()


def write_arrays(folder, cuts):
    """Items of 4x5 in IDX, NPY and NPZ; what decides on types is in the last file."""
    draw = np.random.default_rng(2)
    folder.mkdir()
    values = draw.integers(0, 256, (90, 4, 5))
    labels, weights = draw.integers(0, 10, 90), draw.integers(0, 4, 90) / 2
    for i, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        part, own = values[begin:end].astype("i8"), labels[begin:end]
        part[-1, 0, 0] = 10**12 if end == 90 else part[-1, 0, 0]
        (folder / f"{i}.idx").write_bytes((gzip.compress if i == 1 else bytes)(idx(values[begin:end].astype("u1"))))
        (folder / f"{i}.idx-labels").write_bytes((gzip.compress if i == 0 else bytes)(idx(own.astype("u1"))))
        np.save(folder / f"{i}.npy", np.asfortranarray(part.astype(">i8")) if i == 2 else part)
        np.save(folder / f"{i}.texts.npy", np.array(["c" * int(k + 1) for k in own]))
        np.save(folder / f"{i}.reals.npy", np.where(np.arange(begin, end) == 89, 0.5, own))
        np.savez(folder / f"{i}.npz", x=part.astype("f8") / 4, y=own, w=weights[begin:end])


def test_arrays(tmp_path, info, run_quern):
    """IDX, NPY and NPZ, with labels in files of their own, in the same files, and weights."""
    write_arrays(tmp_path / "one", [0, 90])
    write_arrays(tmp_path / "d", [0, 10, 11, 90])
    ways = [("idx", "idx-labels", []), ("npy", "texts.npy", []), ("npy", "reals.npy", []), ("npz", None, ["--weight", "w"]),
            ("npz", "texts.npy", []), ("npz", None, ["--task", "regress"]), ("npy", "reals.npy", ["--task", "classify"])]
    for items, labels, more in ways:
        def ask(pattern):
            named = ["--labels", f"{pattern}.{labels}"] if labels else []
            return info(f"{pattern}.{items}", *named, *more)
        assert ask(f"{tmp_path}/d/?") == ask(f"{tmp_path}/one/0"), (items, labels, more)
    assert info(f"{tmp_path}/d/?.npz")["classes"] == 10
    files = [tmp_path / "d" / f"{i}.npz:x" for i in (0, 1, 2)]
    rows = [run_quern("data", "convert", *names, "-o", "-", "--format", "csv").stdout for names in (files, [tmp_path / "one/0.npz"])]
    assert rows[0] == rows[1]
    words = [word for i in range(3) for word in ("--data", f"{tmp_path}/d/{i}.npy", "--labels", f"{tmp_path}/d/{i}.texts.npy")]
    train = ["train", "--epochs", "1", "--quiet", "-o"]
    run_quern(*train, tmp_path / "m", *words)
    run_quern(*train, tmp_path / "n", "--data", tmp_path / "one/0.npy", "--labels", tmp_path / "one/0.texts.npy")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    told = run_quern("evaluate", tmp_path / "m", "--data", f"{tmp_path}/d/?.npy", "--labels", f"{tmp_path}/d/?.texts.npy", "--json")
    assert '"items":90' in told.stdout.replace(" ", "")


def test_arrays_that_differ(tmp_path, refused):
    write_arrays(tmp_path / "d", [0, 10, 11, 90])
    at = tmp_path / "d"
    np.save(at / "f.npy", np.zeros((3, 4, 5), "f4"))
    np.save(at / "s.npy", np.zeros((3, 20), "i8"))
    np.savez(at / "u.npz", x=np.zeros((3, 4, 5)))
    (at / "s.idx").write_bytes(idx(np.zeros((2, 4, 6), "u1")))
    (at / "cut.idx").write_bytes(idx(np.zeros((2, 4, 5), "u1"))[:-1])
    cases = [(["0.npy", "f.npy"], [], "are float32, and those of", "0.npy are int64", "f.npy, byte 0"),
             (["0.npy", "s.npy"], [], "has the shape (20,), and one of", "0.npy has (4, 5)"),
             (["0.npz", "u.npz"], [], "has no labels, and", "0.npz has some", "at {}/u.npz"),
             (["u.npz", "0.npz"], [], "has its labels, and", "u.npz has none", "at {}/0.npz"), (["0.idx", "s.idx"], [], "has 4x6 bytes, and in", "0.idx it has 4x5"),
             (["0.idx", "cut.idx"], [], "only 39 bytes follow", "cut.idx"), (["0.npy", "1.npz"], [], "the format npz"),
             (["0.idx", "1.idx"], ["0.idx-labels"], "there is 1 file of labels for 2 files of items", "0.idx-labels"),
             (["0.idx"], ["0.idx-labels", "1.idx-labels"], "are 2 files of labels for 1 file of items"),
             (["0.idx", "1.idx"], ["1.idx-labels", "0.idx-labels"], "1 labels for 10 items of", "0.idx\n", "1.idx-labels, byte"),
             (["0.npy", "1.npy"], ["1.reals.npy", "0.reals.npy"], "1 labels for 10 items of", "1.reals.npy"),
             (["0.npy", "1.npy"], ["0.reals.npy", "1.texts.npy"], "texts of characters, and those of", "1.texts.npy"),
             (["0.npy", "1.npy"], ["0.texts.npy", "d"], "there is no such file", "/d")]
    for items, labels, *words in cases:
        told = refused(*[at / name for name in items], *[word for name in labels for word in ("--labels", at / name)])
        assert all(word.format(at) in told for word in words), told


def test_outputs_replace_no_input(tmp_path, run_quern, quern):
    """Whatever way the input was named; also through a link, an archive's part, and by the labels."""
    for name in "ab":
        write(tmp_path / "d" / f"{name}.csv", ["y,x\n", "1,2\n", "0,3\n"])
    write_arrays(tmp_path / "n", [0, 90])
    (tmp_path / "list").write_text("d/a.csv\nd/b*\n")
    (tmp_path / "link.csv").symlink_to("d/b.csv")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "x.csv").symlink_to("../d/b.csv")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    cases = [(["d/*.csv"], "d/b.csv"), (["d/*.csv"], "link.csv"), (["**/a.csv"], "d/../d/a.csv"), (["@list"], "d/a.csv"), (["@list"], "d/b.csv"),
             (["@list"], "list"), (["d"], "d/b.csv"), (["d"], "d/new.csv"), (["d/a.csv", "d/[b]*"], "d/b.csv"), (["e"], "d/b.csv"),
             (["n/0.npz:x"], "n/0.npz"), (["n/0.npy", "--labels", "n/?.t*"], "n/0.texts.npy")]
    for words, out in cases:
        done = run_quern("data", "convert", *words, "-o", out, "--format", "csv", cwd=tmp_path, status=2)
        assert "would overwrite the file of" in done.stderr or "whose files are all data" in done.stderr, (words, out)
    train = ["train", "--quiet", "--data", "link.csv", "--test", "d/*.csv", "--epochs", "1"]
    run_quern(*train, "-o", "d/a.csv", cwd=tmp_path, status=2)
    with open(tmp_path / "d/a.csv", "a") as out:
        assert subprocess.run([quern, "data", "head", "@list"], stdout=out, cwd=tmp_path).returncode == 2
    assert before == {path: path.read_bytes() for path in before}
    run_quern("data", "convert", "d/*.csv", "-o", "d/c.csv", cwd=tmp_path)  # not yet one of them


def test_json_lines(tmp_path, info, refused):
    """Keys in any order or missing, as in one file; types are those of all."""
    rows = [{"y": i % 3, "a": i if i < 30 else i + 0.5, **({"b": f"t{i % 4}"} if i % 5 != 1 else {}), "k": i // 20} for i in range(60)]
    write(tmp_path / "whole", [json.dumps(row) + "\n" for row in rows])
    for i in range(3):
        part = [{key: row[key] for key in (sorted(row, reverse=i == 1) if i else row) if key != "k"} for row in rows[20 * i:20 * i + 20]]
        text = json.dumps(part) if i == 1 else "\n".join(map(json.dumps, part))
        write(tmp_path / "d" / f"k={i}" / "part", [text], packed=i == 2)
    assert info(tmp_path / "d") == info(tmp_path / "whole")
    write(tmp_path / "x", ['{"y": 1, "a": 2}\n', '{"y": 1, "a": "x"}\n'])
    (tmp_path / "first").write_text(json.dumps(rows[0]) + "\n")
    assert f"at {tmp_path}/x, line 2" in refused(tmp_path / "first", tmp_path / "x")


def test_libsvm(tmp_path, info, refused):
    lines = [f"{i % 2} {1 + i % 5}:{i % 9}" + (f" {20 + i // 25}:0.5" if i > 20 else "") + "\n" for i in range(100)]
    write(tmp_path / "whole", lines)
    for i in range(4):
        write(tmp_path / "d" / str(i), lines[25 * i:25 * i + 25], packed=i == 3)
    assert info(tmp_path / "d") == info(tmp_path / "whole")
    write(tmp_path / "d" / "2", [*lines[50:60], "1 3:x\n"])
    assert f"at {tmp_path}/d/2, line 11, byte" in refused(tmp_path / "d")
