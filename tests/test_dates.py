"""Columns of dates: how they are found, what a network gets of them, and that nothing of them is lost.
Python's datetime and pandas are the oracles."""

import datetime
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import parquet_writer
import python_package

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import column_statistics  # noqa: E402

QUERN = os.environ.get("QUERN", str(Path(__file__).parent.parent / "build" / "quern"))


def quern(folder, *words, code=0):
    done = subprocess.run([QUERN, *map(str, words)], cwd=folder, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout + done.stderr


def info(folder, *words):
    return json.loads(quern(folder, "data", "info", "--json", *words).splitlines()[0])


def recipe(path):
    head = path.read_bytes()
    size = int.from_bytes(head[:8], "little")
    return json.loads(json.loads(head[8:8 + size])["__metadata__"]["recipe"])


def moments(count, seed=1):
    draw = random.Random(seed)
    edges = ["0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "1970-01-01T00:00:00",
             "1969-12-31T23:59:59.999999", "2000-02-29T12:00:00", "1900-03-01T00:00:00.000001"]
    days = datetime.date(9999, 12, 31).toordinal()
    drawn = [datetime.datetime.fromordinal(draw.randrange(1, days)) + datetime.timedelta(
        microseconds=draw.randrange(86400 * 10**6)) for _ in range(count)]
    return [datetime.datetime.fromisoformat(e) for e in edges] + drawn


EPOCH = datetime.date(1970, 1, 1).toordinal()
PARTS = {"year": lambda d: [d.year], "quarter": lambda d: hot((d.month - 1) // 3, 4),
         "month": lambda d: hot(d.month - 1, 12), "day": lambda d: [d.day],
         "weekday": lambda d: hot(d.weekday(), 7), "yearday": lambda d: [d.timetuple().tm_yday],
         "hour": lambda d: hot(d.hour, 24), "minute": lambda d: [d.minute],
         "second": lambda d: [d.second], "days": lambda d: [d.toordinal() - EPOCH]}


def hot(value, count):
    return [float(i == value) for i in range(count)]


def outputs(path, column="y"):
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=0, dtype=np.float64)


def test_inputs_of_a_network(tmp_path):
    """A linear model of one part shows each input: its prediction is that of Python's datetime."""
    when = moments(300)
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(
        f"{w.isoformat()},{(i * 37) % 101 / 7}\n" for i, w in enumerate(when)))
    assert info(tmp_path, "t.csv", "--label", "y")["table"][0] == {
        "name": "t", "type": "time", "missing": 0, "min": "0001-01-01", "max": "9999-12-31",
        "dates": "year,month,weekday,hour,days"}
    parts = ",".join(PARTS)
    (tmp_path / "near.csv").write_text("t,y\n" + "".join(
        f"1970-01-{1 + i:02d}T{i % 24:02d}:00:01,{i % 7 / 2}\n" for i in range(31)))
    train = ["train", "--data", "near.csv", "--label", "y", "--dates", parts, "--model", "dense 1 none",
             "--scale", "none", "--unit", "4", "--lr", "1e-12", "--epochs", "1", "--quiet", "-o", "m.st"]
    quern(tmp_path, *train)
    head = (tmp_path / "m.st").read_bytes()
    size = int.from_bytes(head[:8], "little")
    header = json.loads(head[8:8 + size])
    tensors = {name: np.frombuffer(head[8 + size:], "<f4")[slice(*[o // 4 for o in t["data_offsets"]])]
               for name, t in header.items() if name != "__metadata__"}
    inputs = np.array([[x for part in PARTS.values() for x in part(w)] for w in when])
    assert inputs.shape[1] == len(tensors["layer0.weight"]) == 1 + 4 + 12 + 1 + 7 + 1 + 24 + 1 + 1 + 1
    wanted = (inputs @ tensors["layer0.weight"].astype(float) + tensors["layer0.bias"][0]) * float(
        tensors["target.deviation"][0]) + float(tensors["target.mean"][0])
    quern(tmp_path, "predict", "m.st", "--data", "t.csv", "-o", "p.csv")
    lines = (tmp_path / "p.csv").read_text().splitlines()
    at = lines[0].split(",").index("prediction") if "prediction" in lines[0] else 0
    found = np.array([float(line.split(",")[at]) for line in lines[1:]])
    assert np.allclose(found, wanted, rtol=1e-4, atol=1e-3 * np.abs(inputs).max())
    table = recipe(tmp_path / "m.st")["table"]["features"]
    assert table == [{"name": "t", "dates": list(PARTS)}]
    assert recipe(tmp_path / "m.st")["rules"] == "dates"


@pytest.mark.parametrize("zone", ["", "Z", "+05:30"])
def test_nothing_is_lost(tmp_path, zone):
    """What is read is written again, in head, convert and split; the digest stays."""
    when = [w for w in moments(200) if 1 < w.year < 9999]
    cells = [w.isoformat() + zone for w in when] + [""]
    (tmp_path / "t.csv").write_text("y,t\n" + "".join(f"{i % 2},{c}\n" for i, c in enumerate(cells)))
    quern(tmp_path, "data", "convert", "t.csv", "-o", "u.csv")
    shift = datetime.timedelta(hours=5, minutes=30) if zone.startswith("+") else datetime.timedelta()
    lines = (tmp_path / "u.csv").read_text().splitlines()[1:]
    assert lines[-1].endswith(",")
    for line, w in zip(lines, when):
        cell = line.split(",")[1]
        assert cell.endswith("Z") == bool(zone)
        assert datetime.datetime.fromisoformat(cell.rstrip("Z")) == w - shift
    one, other = info(tmp_path, "t.csv"), info(tmp_path, "u.csv")
    assert one["digest"] == other["digest"] and one["table"] == other["table"]
    assert one["table"][0]["type"] == ("UTC time" if zone else "time")
    assert one["table"][0]["missing"] == 1
    quern(tmp_path, "data", "split", "t.csv", "--parts", "a=0.5,b=0.5", "-o", "%.csv")
    parts = [l for f in "ab" for l in (tmp_path / f"{f}.csv").read_text().splitlines()[1:]]
    assert sorted(parts) == sorted(lines)
    head = quern(tmp_path, "data", "head", "t.csv", "--items", "50")
    assert any("." in line for line in lines[:50]) and all(line.split(",")[1] in head for line in lines[:50])
    shown = json.loads(quern(tmp_path, "data", "head", "t.csv", "--items", "50", "--json").splitlines()[0])["items"]
    assert [item[1] for item in shown] == [line.split(",")[1] for line in lines[:50]]
    # A millisecond is another table.
    cells[0] = (when[0] + datetime.timedelta(milliseconds=1)).isoformat() + zone
    (tmp_path / "t.csv").write_text("y,t\n" + "".join(f"{i % 2},{c}\n" for i, c in enumerate(cells)))
    assert info(tmp_path, "t.csv")["digest"] != one["digest"]


def test_which_columns_are_dates(tmp_path):
    columns = {"iso": ("2024-02-29", "date"), "slash": ("2024/02/29", "category"),
               "german": ("29.02.2024", "category"), "mixed": (None, "category"),
               "blank": ("2024-02-29 08:30", "time"), "clock": ("08:30", "category"),
               "none": ("", "empty"), "month": ("2024-02", "category")}
    rows = [",".join(["y", *columns])]
    for i in range(40):
        mixed = "2024-01-01" if i % 2 else "soon"
        rows.append(",".join([str(i % 2), *(mixed if text is None else text
                                            for text, _ in columns.values())]))
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    found = {c["name"]: c["type"] for c in info(tmp_path, "t.csv")["table"]}
    assert found == {name: kind for name, (_, kind) in columns.items()}
    found = {c["name"]: c["type"] for c in info(tmp_path, "t.csv", "--category", "iso")["table"]}
    assert found["iso"] == "category"
    found = {c["name"]: c["type"] for c in info(tmp_path, "t.csv", "--date-format", "%d.%m.%Y")["table"]}
    assert found["german"] == "date" and found["iso"] == "category"
    # A zone in some cells only tells nothing of the others.
    (tmp_path / "z.csv").write_text("y,t\n0,2024-01-01T00:00Z\n1,2024-01-01T00:00\n")
    assert info(tmp_path, "z.csv")["table"][0]["type"] == "category"


def test_formats(tmp_path):
    """Those of Python's strftime, in numbers too; the model knows the format."""
    draw = random.Random(3)
    days = [datetime.datetime(2000, 1, 1) + datetime.timedelta(minutes=draw.randrange(9 * 365 * 1440))
            for _ in range(300)]
    label = ["yes" if d.weekday() >= 5 else "no" for d in days]
    for form in ("%d.%m.%Y", "%m/%d/%y", "%Y%m%d", "%b %d %Y", "%d %B %Y", "%Y-%j",
                 "%m/%d/%Y %I:%M %p", "%Y%m%d%H%M"):
        (tmp_path / "t.csv").write_text("t,y\n" + "".join(
            f"{d.strftime(form)},{y}\n" for d, y in zip(days, label)))
        quern(tmp_path, "data", "convert", "t.csv", "--label", "y", "--date-format", form,
              "-o", "u.csv")
        read = [line.split(",")[1] for line in (tmp_path / "u.csv").read_text().splitlines()[1:]]
        whole = "H" in form or "I" in form
        assert read == [(d.isoformat() if whole else d.date().isoformat()) for d in days], form
    train = ["train", "--data", "t.csv", "--label", "y", "--date-format", form, "--quiet", "-o", "m.st",
             "--optimizer", "adam", "--lr", "0.01", "--epochs", "20"]
    quern(tmp_path, *train)
    assert recipe(tmp_path / "m.st")["date_format"] == form
    assert "replay: identical" in quern(tmp_path, "replay", "m.st", "--data", "t.csv", "--label", "y")
    said = quern(tmp_path, "predict", "m.st", "--data", "t.csv", "--label", "y", "-o", "p.csv")
    assert float(said.split("accuracy ")[1].split(" %")[0]) > 97
    # The same dates in another form.
    said = quern(tmp_path, "predict", "m.st", "--data", "u.csv", "--label", "y", "--date-format",
                 "%Y-%m-%dT%H:%M:%S", "-o", "q.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()


def test_missing_dates(tmp_path):
    """A missing date is the mean day in the parts that are numbers, and no value in the others."""
    rows = [f"2024-01-{1 + i % 10:02d}" if i % 5 else "" for i in range(100)]
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(f"{t},{i % 2}\n" for i, t in enumerate(rows)))
    assert "--missing" in quern(tmp_path, "train", "--data", "t.csv", "--label", "y", "--quiet",
                                "-o", "m.st", code=1)
    for rule in ("mean", "median", "zero", "drop"):
        said = quern(tmp_path, "train", "--data", "t.csv", "--label", "y", "--missing", rule,
                     "--epochs", "2", "-o", "m.st")
        assert ("20 dates of column \"t\" are missing" in said) == (rule != "drop")
        assert "replay: identical" in quern(tmp_path, "replay", "m.st", "--data", "t.csv", "--label",
                                            "y")
    (tmp_path / "none.csv").write_text("t\n\"\"\n\"\"\n")
    quern(tmp_path, "predict", "m.st", "--data", "none.csv", "--unlabelled", "-o", "p.csv", code=1)


def test_wrong_use(tmp_path):
    (tmp_path / "t.csv").write_text("t,x,y\n" + "".join(
        f"2024-01-{1 + i % 28:02d},{i},{i % 2}\n" for i in range(60)))
    said = quern(tmp_path, "data", "info", "t.csv", "--dates", "yaer", code=2)
    assert '"yaer" is not a part of a date' in said and "did you mean year?" in said
    said = quern(tmp_path, "data", "info", "t.csv", "--date-format", "%d.%m", code=2)
    assert "year, month and day" in said
    for form, wanted in (("%Y-%m-%d%z", "a zone without an hour"), ("%Y%m%d\udcff", "not UTF-8"), ('%Y"%m"%d', "quotation")):
        assert wanted in quern(tmp_path, "data", "info", "t.csv", "--date-format", form, code=2)
    quern(tmp_path, "train", "--data", "t.csv", "--label", "y", "--quiet", "-o", "m.st")
    (tmp_path / "n.csv").write_text("t,x,y\n1,2,0\n3,4,1\n")
    said = quern(tmp_path, "predict", "m.st", "--data", "n.csv", "--label", "y", "-o", "p.csv", code=1)
    assert 'column "t" does not hold dates' in said and "--date-format" in said
    (tmp_path / "d.csv").write_text("t,x,y\n2024-01-01,2024-01-01,0\n2024-01-02,2024-01-01,1\n")
    said = quern(tmp_path, "predict", "m.st", "--data", "d.csv", "--label", "y", "-o", "p.csv", code=1)
    assert 'column "x" holds dates' in said
    said = quern(tmp_path, "data", "convert", "t.csv", "-o", "t.npz", "--label", "y", code=1)
    assert "holds dates, and NPZ holds numbers" in said


def test_dates_that_are_categories_of_the_model(tmp_path):
    """Asked for by --category when it was trained; a file to predict is read without a word."""
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(
        f"2024-01-{1 + i % 4:02d},{'ab'[i % 4 > 1]}\n" for i in range(80)))
    quern(tmp_path, "train", "--data", "t.csv", "--label", "y", "--category", "t", "--quiet", "--epochs", "20",
          "-o", "m.st")
    said = quern(tmp_path, "predict", "m.st", "--data", "t.csv", "--label", "y", "-o", "p.csv")
    assert "accuracy 100.00 %" in said


def test_other_formats(tmp_path):
    """The same table as CSV, JSON lines, SQLite and Parquet: one digest, one description."""
    when = [w for w in moments(100) if 1 < w.year < 9999]
    days, labels = [w.date() for w in when], [i % 2 for i in range(len(when))]
    rows = list(zip(labels, (d.isoformat() for d in days), (w.isoformat(sep=" ") for w in when),
                    (w.replace(microsecond=0).isoformat() + "Z" for w in when)))
    (tmp_path / "t.csv").write_text("y,d,t,z\n" + "".join("{},{},{},{}\n".format(*r) for r in rows))
    wanted = info(tmp_path, "t.csv")
    assert [c["type"] for c in wanted["table"]] == ["date", "time", "UTC time"]
    (tmp_path / "t.jsonl").write_text("".join(
        json.dumps(dict(zip("ydtz", row))) + "\n" for row in rows))
    with sqlite3.connect(tmp_path / "t.db") as base:
        base.execute("CREATE TABLE t (y INTEGER, d DATE, t DATETIME, z TEXT)")
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    base.close()
    numbers = np.array([d.toordinal() - EPOCH for d in days], "<i4")
    micros = np.array(when, "M8[us]").astype("<i8")
    columns = {"y": np.array(labels, "<i4"), "d": numbers, "t": micros}
    parquet_writer.write(tmp_path / "t.parquet", columns, 40,
                         {"d": parquet_writer.DATE, "t": parquet_writer.TIMESTAMP_MICROS})
    for name in ("t.jsonl", "t.db"):
        found = info(tmp_path, name)
        assert found["digest"] == wanted["digest"] and found["table"] == wanted["table"], name
    # The old type of Parquet says that its times are in UTC.
    found = info(tmp_path, "t.parquet")["table"]
    assert found[0] == wanted["table"][0] and found[1] == {**wanted["table"][1], "type": "UTC time"}
    # 96 bits: nanoseconds of the day, and the Julian day.
    ticks = np.array([(w - datetime.datetime.combine(w, datetime.time())) // datetime.timedelta(microseconds=1)
                      for w in when]) * 1000
    spark = np.zeros(len(when), "V12").view([("n", "<i8"), ("d", "<u4")])
    spark["n"], spark["d"] = ticks, numbers + 2440588
    parquet_writer.write(tmp_path / "s.parquet", {**columns, "t": spark.view("V12")}, 40,
                         {"d": parquet_writer.DATE})
    quern(tmp_path, "data", "convert", "s.parquet", "-o", "s.csv")
    read = [line.split(",")[2] for line in (tmp_path / "s.csv").read_text().splitlines()[1:]]
    assert [datetime.datetime.fromisoformat(cell) for cell in read] == when
    # Times of day are numbers of seconds; a date out of range is named.
    parquet_writer.write(tmp_path / "u.parquet", {"y": columns["y"], "t": np.abs(micros) % (86400 * 10**6)},
                         40, {"t": parquet_writer.TIME_MICROS})
    assert info(tmp_path, "u.parquet")["table"][0]["max"] <= 86400
    parquet_writer.write(tmp_path / "v.parquet", {**columns, "t": micros + 2**62}, 40,
                         {"d": parquet_writer.DATE, "t": parquet_writer.TIMESTAMP_MILLIS})
    for more in [], ["--category", "t"]:
        assert "after year 9999" in quern(tmp_path, "data", "info", "v.parquet", *more, code=1)


def test_many_times_as_text(tmp_path):
    """More different texts than a column of categories may have; one that is not a date ends it."""
    rows = [{"y": i % 2, "t": f"2024-01-01T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}.{k}"}
            for k in range(2) for i in range(86400)]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert info(tmp_path, "t.jsonl")["table"][0]["type"] == "time"
    with path.open("a") as file:
        file.write(json.dumps({"y": 0, "t": "soon"}) + "\n")
    assert "more than 100000 different texts" in quern(tmp_path, "data", "info", "t.jsonl", code=1)


def test_beside_other_exact_columns(tmp_path):
    """Whole numbers above 2^24, times and categories in one table, in every format."""
    when = [w for w in moments(50) if 1 < w.year < 9999]
    rows = [(i % 2, 2**40 + i, w.isoformat(), f"c{i % 3}", 2**30 + i) for i, w in enumerate(when)]
    (tmp_path / "t.csv").write_text("y,a,t,c,b\n" + "".join("{},{},{},{},{}\n".format(*r) for r in rows))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(dict(zip("yatcb", r))) + "\n" for r in rows))
    assert info(tmp_path, "t.csv")["digest"] == info(tmp_path, "t.jsonl")["digest"]
    for name in ("t.csv", "t.jsonl"):
        quern(tmp_path, "data", "convert", name, "-o", "u.csv")
        read = [line.split(",") for line in (tmp_path / "u.csv").read_text().splitlines()[1:]]
        assert [datetime.datetime.fromisoformat(r[2]) for r in read] == when
    quern(tmp_path, "train", "--data", "t.csv", "--epochs", "2", "--quiet", "-o", "m.st")
    assert "replay: identical" in quern(tmp_path, "replay", "m.st", "--data", "t.jsonl")


def test_onnx_has_no_dates(tmp_path):
    """Its input is a matrix of float32, in which a time of the day is lost."""
    (tmp_path / "t.csv").write_text("t,y\n" + "".join(f"2024-01-{1 + i % 28:02d},{i % 2}\n" for i in range(60)))
    quern(tmp_path, "train", "--data", "t.csv", "--label", "y", "--epochs", "1", "--quiet", "-o", "m.st")
    said = quern(tmp_path, "model", "export", "m.st", "-o", "m.onnx", code=1)
    assert 'column "t" holds dates' in said and "--drop" in said


def test_what_helps_where_dates_are_categories(tmp_path):
    for cells, says in ((["2020-01-01T10:00Z", "2020-01-01T10:00"], "name a zone in all cells or in none"),
                        (["0001-01-01T00:00+05:00", "9999-12-31T23:59-08:00"], "in the years 1 to 9999"),
                        (["1.2.2024", "3.4.2024"], "say how they are written with --date-format"),
                        (["1.2.2024", "3.4.2024", "--date-format", "%Y-%m-%d"], "correct --date-format, whose form they do not have"),
                        (["2024-01-02", "2024-02-30", "2024-03-01"], 'holds dates, but "2024-02-30" is not one'),
                        (["2024-01-02", "2024-02-28", "never"], 'holds dates, but "never" is not one'),
                        (["1.2.2024", "31.2.2024", "1.3.2024", "--date-format", "%d.%m.%Y"], 'but "31.2.2024" is not one')):
        words = cells[cells.index("--date-format"):] if "--date-format" in cells else []
        rows = cells[:len(cells) - len(words)]
        (tmp_path / "t.csv").write_text("y,t\n" + "".join(f"{i},{c}\n" for i, c in enumerate(rows)))
        assert says in quern(tmp_path, "data", "info", "t.csv", "--label", "y", *words)
    # A model without dates takes no form of them, and does not use the column.
    (tmp_path / "t.csv").write_text("y,x\n" + "".join(f"{i % 2},{i % 7}\n" for i in range(30)))
    quern(tmp_path, "train", "--data", "t.csv", "--epochs", "1", "--quiet", "-o", "m.st")
    (tmp_path / "t.csv").write_text("y,x,t\n1,2,2024-01-02\n0,3,2024-01-03\n")
    assert "dates" not in quern(tmp_path, "predict", "m.st", "--data", "t.csv")
    # A text among a few is a category, and the note is about most of them only.
    (tmp_path / "t.csv").write_text("y,t\n" + "".join(f"{i},{c}\n" for i, c in enumerate(["2024-01-02", "never", "ever"])))
    assert "dates" not in quern(tmp_path, "data", "info", "t.csv", "--label", "y")


def test_statistics(tmp_path):
    """Numbers are days, of times with their part of the day, and dates are told beside them; as pandas has them."""
    when = [None if i % 11 == 4 else w for i, w in enumerate(moments(40))]
    days = [w.date() if w else None for w in when[::-1]]
    few = [datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=37 * i) for i in range(len(when))]
    columns = {"d": days, "t": when, "z": few, "x": list(range(len(when)))}
    (tmp_path / "t.csv").write_text("y,d,t,z,x\n" + "".join(
        ",".join([str(i % 2), *(v.isoformat() if v else "" for v in (d, t)), z.isoformat() + "Z", str(x)]) + "\n"
        for i, (d, t, z, x) in enumerate(zip(*columns.values()))))
    words = ["data", "stats", "t.csv", "--label", "y", "--quantiles", "0,0.5,0.9", "--histograms"]
    told = json.loads(quern(tmp_path, *words, "--by-class", "--correlation", "--json").splitlines()[0])
    unit, epoch = 86400 * 10**6, datetime.datetime(1970, 1, 1)
    micros = {name: [math.nan if v is None else (v - epoch) // datetime.timedelta(microseconds=1)
                     for v in columns[name]] for name in "tz"}
    numbers = {"d": [math.nan if v is None else v.toordinal() - EPOCH for v in days], **micros, "x": columns["x"]}
    scale = {"d": 1, "t": unit, "z": unit, "x": 1}

    def moment(text):
        return datetime.datetime.fromisoformat(text.rstrip("Z")) if text else None
    assert [c["type"] for c in told["columns"]] == ["date", "time", "UTC time", "number"]
    for column, (name, own) in zip(told["columns"], numbers.items()):
        for group, one in enumerate([column, *column["by_class"]]):
            here = [v for i, v in enumerate(own) if v == v and group in (0, i % 2 + 1)]
            wanted = column_statistics.moments(here)
            for key, told_as in (("mean", "mean"), ("deviation", "deviation"), ("minimum", "min"), ("maximum", "max")):
                assert one[told_as] == wanted[key] / scale[name], (name, group, key)
            assert one["variance"] == wanted["variance"] / scale[name]**2 and one["skewness"] == wanted["skewness"]
            assert one["quantiles"] == [column_statistics.quantile(here, q) / scale[name] for q in (0, .5, .9)]
            if name == "x":
                assert "dates" not in one
                continue
            dates, source = one["dates"], [columns[name][i] for i, v in enumerate(own) if v in here]
            ends = [v.isoformat() + "Z" * (name == "z") for v in (min(source), max(source))]
            assert [dates["min"], dates["max"]] == ends and dates["quantiles"][0] == ends[0]
            for text, days_since in [(dates["mean"], one["mean"]), *zip(dates["quantiles"], one["quantiles"])]:
                apart = moment(text) - epoch
                assert abs(apart / datetime.timedelta(days=1) - days_since) < 1e-9
                assert text.endswith("Z") == (name == "z")
        if name != "x":
            assert column["edge_dates"][0] == column["dates"]["min"] and column["edge_dates"][-1] == column["dates"]["max"]
        counts, edges = column_statistics.histogram([v for v in own if v == v])
        assert (column["histogram"], column["edges"]) == (counts, [e / scale[name] for e in edges])
    for k, (one, left) in enumerate(numbers.items()):
        for m, (other, right) in enumerate(numbers.items()):
            covariance, correlation = column_statistics.pair(left, right)
            assert told["correlation"][k][m] == correlation
            assert told["covariance"][k][m] == covariance / (scale[one] * scale[other])
    assert told["columns"][1]["dates"]["max"] == "9999-12-31T23:59:59.999999"
    shown = quern(tmp_path, *words)
    assert "z                    2024-01-01T00:13:52 2024-01-01T00:00:00" in shown
    assert "  2024-01-01 " in shown and max(map(len, shown.split("note:")[0].splitlines())) <= 80
    assert "features  4, 32-bit floats, from 0 to 45\n" in quern(tmp_path, "data", "info", "t.csv", "--label", "y")


def test_statistics_in_python():
    import pandas  # noqa: PLC0415

    python_package.folder()
    import quern as library  # noqa: PLC0415

    draw = random.Random(3)
    stamps = pandas.Series(pandas.to_datetime([1_700_000_000_000_000 + draw.randrange(10**13) for _ in range(31)], unit="us"))
    frame = pandas.DataFrame({"t": stamps, "x": range(31)})
    found = library.Data(frame).describe()
    dates = found["dates"][0]
    assert found["dates"][1] is None and dates["minimum"] == stamps.min() and dates["maximum"] == stamps.max()
    assert abs(dates["mean"] - stamps.mean()) < pandas.Timedelta("2us")
    assert (abs(dates["quantiles"] - stamps.quantile([.25, .5, .75]).to_numpy()) < np.timedelta64(2, "us")).all()
    table = library.Data(frame).describe(as_frame=True)
    assert table.loc["t", "minimum"] == stamps.min() and abs(table.loc["t", "50%"] - stamps.median()) < pandas.Timedelta("2us")
    assert table.loc["x", "mean"] == 15 and table.loc["t", "deviation"] == pytest.approx(stamps.std() / pandas.Timedelta("1D"))
