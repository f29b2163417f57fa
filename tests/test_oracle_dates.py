"""Dates by both programs (docs/exactness.md 23.10 to 23.13), and the oracle's calendar beside Python's datetime."""

import csv
import datetime
import random

import numpy as np
import pytest

from test_oracle import train

import dates  # of the oracle, whose folder test_oracle adds to the path

EPOCH = datetime.datetime(1970, 1, 1)
FORMATS = {"": "%Y-%m-%d", "%d.%m.%Y": None, "%Y%m%d": None, "%d %b %y": None, "%B %d, %Y": None,
           "%m/%d/%Y %I:%M %p": None, "%Y-%j %H:%M:%S.%f": None, "%d,%m%Y": None, "%Y%%%m é %d\t%H%M%z": None}
SPANS = ((1, 400), (3651694, 3652058), (1, 3652058), (719163, 739163), (738000, 738001))
MARKS = ["", "na", "NaT", "--", "?", "none", "\\N", "+nat", "–"]


# ---- the oracle's own arithmetic ----


def test_the_calendar_is_that_of_datetime():
    last = datetime.date.max.toordinal()
    starts = [datetime.date(year, 1, 1).toordinal() for year in range(1, 10000)]
    for ordinal in {*range(1, last, 97), *starts, *(start - 1 for start in starts[1:]), last}:
        day = datetime.date.fromordinal(ordinal)
        number = ordinal - EPOCH.toordinal()
        assert dates.civil(number) == (day.year, day.month, day.day, day.timetuple().tm_yday)
        assert dates.number_of("weekday", number * dates.DAY) == day.weekday()
        if ordinal % 7 == 0:
            assert dates.moment_of(day.isoformat(), "") == (number * dates.DAY, False, False)


def written(moment, form):
    """By datetime, whose %Y has fewer than four digits in early years."""
    return moment.strftime(form.replace("%Y", f"{moment.year:04d}"))


@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S.%f%z", *list(FORMATS)[1:]])
def test_texts_are_read_as_by_datetime(form):
    generator = random.Random(3)
    for _ in range(60):
        zone = datetime.timezone(datetime.timedelta(minutes=generator.randint(-1439, 1439)))
        moment = datetime.datetime(2, 1, 1) + datetime.timedelta(microseconds=generator.randint(0, 9998 * 365 * dates.DAY))
        if "%y" in form:
            moment = moment.replace(year=1969 + moment.year % 100, day=1)
        text = written(moment.replace(tzinfo=zone), form)
        again = datetime.datetime.strptime(text, form)
        again -= again.utcoffset() or datetime.timedelta(0)
        wanted = (again.replace(tzinfo=None) - EPOCH) // datetime.timedelta(microseconds=1)
        own = "" if form.startswith("%Y-%m-%dT") else form
        assert dates.moment_of(text, own) == (wanted, "%H" in form or "%I" in form, "%z" in form), text


# ---- random tables ----


def draw_date(generator, form, span):
    """A text by the format; without one ISO 8601, often with a time."""
    moment = datetime.datetime.fromordinal(generator.randint(*span))
    moment += datetime.timedelta(microseconds=generator.randint(0, dates.DAY - 1))
    text = written(moment.replace(tzinfo=datetime.timezone.utc), form)
    return text.swapcase() if "%b" in form or "%p" in form else text


def draw_iso(generator, span, timed, zone):
    moment = datetime.datetime.fromordinal(generator.randint(*span))
    text = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    if not timed:
        return text
    text += f"{generator.choice('Tt ')}{generator.randint(0, 23):02d}:{generator.randint(0, 59):02d}"
    if generator.random() < 0.7:
        text += f":{generator.randint(0, 59):02d}"
        if generator.random() < 0.7:
            text += f"{generator.choice('.,')}{generator.randint(0, 10**generator.randint(1, 9) - 1)}"
    # A date and midnight in UTC stay in the years 1 to 9999: no span has their last day.
    return text + generator.choice(["Z", "z", " +00:00", "-00:30"]) if zone else text


def draw_column(generator, kind, items, form):
    span = generator.choice(SPANS)
    zone = generator.random() < 0.3
    return [{"date": lambda: draw_iso(generator, span, False, False),
             "time": lambda: draw_iso(generator, span, True, zone),
             "both": lambda: draw_iso(generator, span, generator.random() < 0.5, False),
             "form": lambda: draw_date(generator, form or "%Y-%m-%d", span if form.find("%y") < 0 else SPANS[3]),
             "number": lambda: f"{generator.gauss(0, 10):.3f}",
             "whole": lambda: str(generator.choice([-1, 1]) * generator.randint(2**24, 2**50)),
             "town": lambda: generator.choice(["Ulm", "Bern", "Wien"])}[kind]() for _ in range(items)]


def draw_table(generator, kinds, items, form, labels):
    columns = [draw_column(generator, kind, items, form) for kind in kinds]
    for kind, column in zip(kinds, columns):
        share = generator.choice([0, 0.1, 0.3])
        marks = MARKS[:2] if kind in ("number", "whole") else MARKS
        for i in range(items):
            if generator.random() < share:
                column[i] = generator.choice(marks)
    return [*columns, [labels[i % len(labels)] for i in range(items)], [generator.choice(["1", "0.5", "3"]) for _ in range(items)]]


def write(path, generator, names, columns, separator):
    order = generator.sample(range(len(names)), len(names))
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, delimiter=separator, quoting=generator.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        writer.writerow([names[k] for k in order])
        writer.writerows(zip(*(columns[k] for k in order)))


def draw_job(generator, folder):
    """The arguments of a training on a random table."""
    form = generator.choice(["", "", "", *FORMATS])
    kinds = ["form" if form else generator.choice(["date", "time", "both"])]
    kinds += generator.choices(["date", "time", "both", "form", "form", "number", "whole", "town"], k=generator.randint(1, 5))
    labels = "pqr" if generator.random() < 0.7 else [f"{generator.gauss(5, 2):.2f}" for _ in range(7)]
    names = [f"{kind}{k}" for k, kind in enumerate(kinds)] + ["label", "weight"]
    separator = generator.choice(",;")
    write(folder / "train.csv", generator, names, draw_table(generator, kinds, generator.randint(30, 50), form, labels), separator)
    job = {"--data": folder / "train.csv", "--label": "label", "--seed": generator.randint(1, 99), "--grain": 5, "--batch": 16,
           "--epochs": 2, "--lr": "0.01", "--unit": 20, "--missing": generator.choice(["mean", "median", "zero"]),
           "--scale": generator.choice(["standard", "minmax", "robust"]), "--optimizer": "adam"}
    job |= ({"--model": "dense 3 tanh; dense 3 softmax", "--loss": "cross-entropy"} if labels == "pqr" else
            {"--model": "dense 3 tanh; dense 1 none", "--loss": "mse", "--task": "regress"})
    job |= {"--date-format": form} if form else {}
    job |= {"--weight": "weight"} if generator.random() < 0.3 else {"--drop": "weight"}
    if generator.random() < 0.5:
        job["--dates"] = ",".join(generator.sample(list(dates.PARTS), generator.randint(1, 10)))
    if generator.random() < 0.2:
        job["--category"] = generator.choice(names[: len(kinds)])
    choice = generator.random()
    if choice < 0.5:
        # Where dates have a format, those without one are categories, most of which the model does not list.
        others = [{"date": "time", "time": "date"}.get(kind, kind) if generator.random() < 0.5 else kind for kind in kinds]
        write(folder / "valid.csv", generator, names, draw_table(generator, others, 12, form, labels), separator)
        job |= {"--valid": folder / "valid.csv", "--keep": "best"}
    elif choice < 0.8:
        job["--valid"] = "0.25"
    return [str(part) for pair in job.items() for part in pair]


@pytest.mark.parametrize("seed", range(14))
def test_random_tables(seed, tmp_path):
    train(draw_job(random.Random(seed), tmp_path), tmp_path / "model.st")
    if seed == 0:
        assert b'\\"dates\\"' in (tmp_path / "model.st").read_bytes()


# ---- what the text had left open ----

ITEMS = 24
SMALL = ["--label", "y", "--seed", "4", "--grain", "5", "--batch", "8", "--epochs", "3", "--lr", "0.1", "--scale", "standard",
         "--model", "dense 2 softmax", "--loss", "cross-entropy", "--missing", "mean"]


def table(path, cell):
    path.write_text("y;d;x\n" + "".join(f"{i % 2};{cell(i)};{i}\n" for i in range(ITEMS)))
    return path


@pytest.mark.parametrize("cell, more, said", [
    # The only moment that is not a midnight is held back, or dropped.
    (lambda i: f"2024-01-{i + 1:02d}{'T10:00' if i == 3 else ''}", ["--valid", "0.5"], b'\\"weekday\\",\\"hour\\"'),
    # A moment beyond the years 1 to 9999 in UTC.
    (lambda i: f"{i + 1:04d}-01-01T00:00+01:00", [], b'\\"categories\\"'),
    (lambda i: f"{i + 2:04d}-01-01T00:00+01:00", [], b'\\"dates\\"'),
    # Dates that have a decimal comma, of which one is a mark; two spaces in a format, which are one or more.
    (lambda i: f"{i + 1:02d},012024" if i else "none", ["--date-format", "%d,%m%Y"], b"dates none commas"),
    (lambda i: f"{i + 1}  1 2024", ["--date-format", "%d  %m %Y"], b'\\"categories\\"'),
    # A number may be a date, and a format is written as other texts are.
    (lambda i: f"2024\t{i + 1}.7", ["--date-format", "%Y\t%d.%m"], b'\\"date_format\\":\\"%Y\\\\t%d.%m\\"'),
    (lambda i: f"{2000 + i}.0728", ["--date-format", "%Y.%m%d"], b'\\"date_format\\":\\"%Y.%m%d\\"'),
    (lambda i: f"{2000 + i}.0728", ["--date-format", "%Y.%d%m"], b'"'),
])
def test_rare_cells(cell, more, said, tmp_path):
    train(["--data", table(tmp_path / "d.csv", cell), *SMALL, *more], tmp_path / "m.st")
    assert said in (tmp_path / "m.st").read_bytes()


def day(i):
    return f"2024-01-{i + 1:02d}"


FORMS = {"days": day, "times": lambda i: f"{day(i)}T{i:02d}:30", "zones": lambda i: f"{day(i)} {i:02d}:30:15.5 +02",
         "nothing": lambda i: ""}


@pytest.mark.parametrize("judge", FORMS)
@pytest.mark.parametrize("form, more", [("days", []), ("times", []), ("zones", []), ("times", ["--category", "d"])])
def test_a_validation_file_of_other_dates(form, more, judge, tmp_path):
    """Days stand for moments and moments for days, with and without zones; a known category stays one."""
    data, valid = table(tmp_path / "d.csv", FORMS[form]), table(tmp_path / "v.csv", FORMS[judge])
    train(["--data", data, "--valid", valid, "--keep", "best", *SMALL, *more], tmp_path / "m.st")


def test_widths_and_missing_dates():
    """The numbers of a missing date are those of the fill's day, in the years 1 to 9999."""
    moments = [None, dates.DAY * 59 + 3_600_000_000 * 5]
    for fill, year in ((58.9, 1970), (-1e9, 1), (1e9, 9999)):
        columns = dates.inputs(moments, dates.Parts(dates.PARTS), np.float32(fill))
        assert len(columns) == sum(dates.PARTS.values())
        assert columns[0].tolist() == [year, 1970]
        assert all(column[0] == 0 for column in columns[1:5])
