"""Columns of whole numbers that name items and measure nothing: a note says to leave them out."""

import datetime
import json
import random

ITEMS = 300


def drawn(rng, low, high):
    return list({rng.randrange(low, high): 0 for _ in range(2 * ITEMS)})[:ITEMS]


def columns():
    """Columns that are ids, and columns that look like them at first sight."""
    rng = random.Random(5)
    days = [datetime.date(1999, 1, 1) + datetime.timedelta(days=i) for i in range(ITEMS)]
    rng.shuffle(days)
    rows = list(range(ITEMS))
    ids = {"customer": drawn(rng, 10**8, 10**9), "hash": drawn(rng, -2**63 + 1, 2**63),
           "above 53 bits": [2**53 + i for i in rows], "order": rng.sample(range(10000, 10400), ITEMS),
           "client_id": sorted(drawn(rng, 1000, 90000)), "ClientID": sorted(drawn(rng, 1000, 90000)),
           "clientId2": drawn(rng, 10**4, 10**5), "customerid": drawn(rng, 1000, 90000),
           "id_kunde": drawn(rng, 1600000000, 1700000000), "zip code": drawn(rng, 10**4, 10**5),
           "Invoice No": [-i for i in rows]}
    others = {"amount paid": drawn(rng, 1000, 90000), "no_previous": drawn(rng, 1000, 90000),
              "unix": drawn(rng, 1600000000, 1700000000), "ms": drawn(rng, 16 * 10**11, 17 * 10**11),
              "year": rng.sample(range(1700, 1700 + ITEMS), ITEMS), "day key": [f"{d:%Y%m%d}" for d in days],
              "minute": [f"{d:%Y%m%d}2359" for d in days], "counter": [2**26 + 1001 * i for i in rows],
              "axis": [i + 100 for i in rows], "income": drawn(rng, 20000, 200000),
              "cents": sorted({int(rng.gauss(4e8, 5e7)) for _ in range(2 * ITEMS)}, key=lambda v: v % 997)[:ITEMS],
              "people": [int(rng.lognormvariate(17, 2)) + 2**24 for _ in rows],
              "micro degrees": drawn(rng, -18 * 10**8, 18 * 10**8),
              "rounded id": [v + 0.25 for v in drawn(rng, 10**9, 10**10)],
              "half id": [v + 0.5 for v in drawn(rng, 1000, 90000)],
              "twice id": [7, 7, *drawn(rng, 1000, 90000)[2:]],
              "missing id": ["", *drawn(rng, 1000, 90000)[1:]]}
    return ids, others


def noted(info):
    lines = (info["note"] or "").split("\n")
    return [line for line in lines if "looks like an id" in line]


def test_ids_are_noted(run_quern, tmp_path):
    ids, others = columns()
    table = {**ids, **others}
    path, typed = tmp_path / "t.csv", tmp_path / "t.parquet"
    path.write_text("\n".join([",".join([*table, "y"])] + [
        ",".join(map(str, [*row, i % 3 % 2])) for i, row in enumerate(zip(*table.values(), strict=True))]) + "\n")

    def ask(path, *more):
        return noted(json.loads(run_quern("data", "info", path, "--label", "y", "--json", *more).stdout))
    told = ask(path)
    assert told == [f"column {i + 1} ({name}) looks like an id: its whole numbers are all different; "
                    f"leave it out with --drop {i + 1}" for i, name in enumerate(ids)]
    run_quern("data", "convert", path, "--label", "y", "-o", typed)
    # There the label is the first column.
    assert [line.split("(")[1] for line in ask(typed)] == [
        f"{name}) looks like an id: its whole numbers are all different; leave it out with --drop {i + 2}"
        for i, name in enumerate(ids)]
    assert ask(path, "--drop", f"1-{len(ids)}") == []
    assert len(ask(path, "--category", "zip code")) == len(ids) - 1
    model = tmp_path / "m"
    done = run_quern("train", "--data", path, "--label", "y", "--features", "customer,income", "--epochs", 1,
                     "-o", model)
    assert "(customer) looks like an id" in done.stderr
    assert "looks like" not in run_quern("predict", model, "--data", path).stderr

    # Few items may differ by chance, and without a header the place alone names a column.
    lines = path.read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(lines[:21]) + "\n")
    assert ask(tmp_path / "few.csv") == []
    (tmp_path / "bare.csv").write_text("\n".join(
        f"{i % 3 % 2},{v}" for i, v in enumerate(ids["customer"])) + "\n")
    told = json.loads(run_quern("data", "info", tmp_path / "bare.csv", "--label", "1", "--json").stdout)
    assert noted(told) == ["column 2 looks like an id: its whole numbers are all different; "
                           "leave it out with --drop 2"]
