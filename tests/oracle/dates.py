"""Sections 23.10 to 23.13 of the contract: dates of CSV files and their inputs.

A moment is a Python integer, and so is all arithmetic here: Python's `datetime` is only the tests' own oracle.
"""

import re

import numpy as np

DAY = 86_400_000_000
FIRST, LAST = -719162, 2932896  # 0001-01-01 and 9999-12-31
PARTS = {"year": 1, "quarter": 4, "month": 12, "day": 1, "weekday": 7, "yearday": 1, "hour": 24,
         "minute": 1, "second": 1, "days": 1}  # with their numbers of inputs
MONTHS = ("january february march april may june july august september october november "
          "december").split()
ISO = re.compile(r"(?P<Y>[0-9]{4})-(?P<m>[0-9]{2})-(?P<d>[0-9]{2})"
                 r"(?:[Tt ](?P<H>[0-9]{2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:[.,](?P<f>[0-9]{1,9}))?)?"
                 r"(?: *(?P<z>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?))?)?")
FIELDS = {"Y": "[0-9]{4}", "y": "[0-9]{2}", "j": "[0-9]{1,3}", "p": "(?i:[ap]m)", "f": "[0-9]{1,9}",
          "z": "[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?", "%": "%", " ": " +", **dict.fromkeys("mdHMSI", "[0-9]{1,2}"),
          **dict.fromkeys("bB", "(?i:%s)" % "|".join([*MONTHS, *(month[:3] for month in MONTHS)]))}


# ---- the calendar (23.10) ----


def leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def lengths(year):
    return (31, 29 if leap(year) else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def first_day(year):
    """The day of January the first."""
    before = year - 1
    return 365 * before + before // 4 - before // 100 + before // 400 + FIRST


def civil(day):
    """(year, month, day of the month, day of the year)."""
    year = (day - FIRST) * 400 // 146097 + 1
    year += (first_day(year + 1) <= day) - (first_day(year) > day)
    of_year = day - first_day(year)
    rest, month = of_year, 1
    for length in lengths(year):
        if rest < length:
            break
        rest, month = rest - length, month + 1
    return year, month, rest + 1, of_year + 1


# ---- texts (23.11) ----


def fields_of(text, form):
    """What each field says of a text in the form; None where it has another."""
    said = dict.fromkeys("YymbdjHIMSfpz")
    if not form:
        found = ISO.fullmatch(text)
        return found and said | found.groupdict()
    at = 0
    for field, plain in re.findall(r"%(.)|(.)", form, re.S):
        found = re.compile(FIELDS[field or " "] if field or plain == " " else re.escape(plain)).match(text, at)
        if not found:
            return None
        at = found.end()
        said[field.lower() if field == "B" else field] = found[0]
    return said if at == len(text) else None


def day_of(said):
    """The day that the fields name, or None."""
    year = int(said["Y"]) if said["Y"] else int(said["y"]) + (1900 if int(said["y"]) >= 69 else 2000)
    if not 1 <= year <= 9999:
        return None
    if said["j"]:
        of_year = int(said["j"])
        return first_day(year) + of_year - 1 if 1 <= of_year <= 365 + leap(year) else None
    month = int(said["m"]) if said["m"] else [m[:3] for m in MONTHS].index(said["b"][:3].lower()) + 1
    if not 1 <= month <= 12 or not 1 <= int(said["d"]) <= lengths(year)[month - 1]:
        return None
    return first_day(year) + sum(lengths(year)[: month - 1]) + int(said["d"]) - 1


def time_of(said):
    """The microseconds since midnight, or None."""
    hour, minute, second = (int(said[c] or 0) for c in "HMS")
    if said["I"]:
        if not 1 <= int(said["I"]) <= 12:
            return None
        hour = int(said["I"]) % 12 + 12 * (said["p"][0] in "Pp")
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(((said["f"] or "") + "000000")[:6])


def zone_of(text):
    """The microseconds that a zone is ahead of UTC, or None."""
    if text in (None, "Z", "z"):
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    ahead = (hours * 60 + minutes) * 60_000_000
    return None if hours > 23 or minutes > 59 else -ahead if text[0] == "-" else ahead


def moment_of(text, form):
    """(moment, whether it names a time, whether it names a zone) of a cell; None where it is not a date."""
    said = fields_of(text, form)
    if not said:
        return None
    day, time, zone = day_of(said), time_of(said), zone_of(said["z"])
    if None in (day, time, zone):
        return None
    moment = day * DAY + time - zone
    return None if not FIRST <= moment // DAY <= LAST else (moment, bool(said["H"] or said["I"]), bool(said["z"]))


def column(cells, form):
    """23.10: the moments of a column (None: missing) and whether one names a time; None where it does not hold
    dates. A cell is None where it is missing."""
    found = [None if cell is None else moment_of(cell, form) for cell in cells]
    there = [of for cell, of in zip(cells, found) if cell is not None]
    if not there or None in there or len({zone for _, _, zone in there}) > 1:
        return None
    return [None if of is None else of[0] for of in found], any(time for _, time, _ in there)


def days(moments):
    """The values of the column."""
    return [np.float32(np.nan) if moment is None else np.float32(moment // DAY) for moment in moments]


# ---- inputs (23.12, 23.13) ----


class Parts(list):
    """Of a column of dates: the kind of a column beside lists of categories."""

    def widths(self):
        return [PARTS[part] for part in self]


def parts_of(chosen, moments):
    """The parts of a column, in their order; None: those where nothing is said."""
    if chosen is None:
        chosen = {"year", "month", "weekday", "days"}
        chosen |= {"hour"} if any(moment is not None and moment % DAY for moment in moments) else set()
    return Parts(part for part in PARTS if part in chosen)


def number_of(part, moment):
    day, time = divmod(moment, DAY)
    if part in ("hour", "minute", "second"):
        seconds = time // 1_000_000
        return {"hour": seconds // 3600, "minute": seconds // 60 % 60, "second": seconds % 60}[part]
    if part == "weekday":
        return (day + 3) % 7  # 1970-01-01 is a Thursday
    year, month, of_month, of_year = civil(day)
    return {"year": year, "quarter": (month + 2) // 3 - 1, "month": month - 1, "day": of_month,
            "yearday": of_year, "days": day}[part]


def inputs(moments, parts, fill):
    """23.13: the columns of inputs."""
    midnight = min(max(int(np.floor(fill)), FIRST), LAST) * DAY
    columns = []
    for part in parts:
        numbers = [number_of(part, midnight if moment is None else moment) for moment in moments]
        if PARTS[part] == 1:
            columns.append(np.array(numbers, np.float32))
            continue
        columns += [np.array([moment is not None and number == value for number, moment in zip(numbers, moments)],
                             np.float32) for value in range(PARTS[part])]
    return columns


