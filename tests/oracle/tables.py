"""Sections 2.1, 23.10, 23.21 and 23.22 of the contract: CSV.

`read` gives the values (uint8, or float32 with NaN for what is missing), the labels (uint32, or
float32 for targets; None without) and the table as 11.6 writes it.
"""

import re
from fractions import Fraction
from functools import cache

import numpy as np

import dates
import several
from binary32 import from_text, to_text

LOOK_BYTES, LOOK_LINES = 1048576, 100
MISSING = ("nan", "na", "n/a", "null", "#n/a", "<na>", "?")
MARKS = ("none", "#na", "#n/a n/a", "1.#ind", "1.#qnan", "nat", "\\n", ".", "--", "---", "\u2013",
         "\u2014")  # 23.21
RULES = frozenset({"dates", "none", "commas", "text"})


class Refused(SystemExit):
    """The contract refuses the file."""


def refuse(why):
    raise Refused(f"oracle: {why}")


# ---- cells (2.1.3, 2.1.4) ----


def split(line, separator):
    """The cells of a line, as (raw text between blanks or quotes, text)."""
    blanks = bytes(set(b" \t\r") - set(separator))
    cells, rest = [], line
    while True:
        rest = rest.lstrip(blanks)
        if rest[:1] == b'"':
            quoted = re.match(rb'"((?:[^"]|"")*)"[%s]*(?=%s|$)' % (blanks, re.escape(separator)),
                              rest, re.S)
            if not quoted:
                refuse("the quotes of a cell do not pair")
            raw, rest = quoted[1], rest[quoted.end():]
            cells.append((raw, raw.replace(b'""', b'"')))
        else:
            raw = rest.split(separator, 1)[0]
            rest = rest[len(raw):]
            cells.append((raw.rstrip(blanks),) * 2)
        if not rest:
            return cells
        rest = rest[1:]


@cache  # a table often holds few different texts
def kind(raw):
    """What a cell is."""
    text = raw.decode("latin-1")
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return "number"
    word = text.lower()
    word = word[1:] if word[:1] in ("+", "-") else word
    if word == "" or word in MISSING:
        return "missing"
    if word in ("inf", "infinity"):
        return "infinite"
    return "none" if word == "none" else "text"


@cache
def is_mark(raw):
    """23.21"""
    word = raw.decode("utf-8", "replace").lower()
    return word in MARKS or (word[:1] in ("+", "-") and word[1:] in MARKS)


NOTATION = re.compile(rb"([+-]?)([0-9]{1,3}(?:\.[0-9]{3})+|[0-9]*)(?:(,)([0-9]*))?([eE][+-]?[0-9]+)?")


@cache
def comma_of(raw):
    """23.22: (what 2.1.4 would read, comma, points, doubt), or None."""
    found = NOTATION.fullmatch(raw)
    if not found or len(raw) > 128 or not re.search(rb"[0-9]", found[2] + (found[4] or b"")):
        return None
    sign, whole, comma, places, power = found.groups(b"")
    points = b"." in whole
    if points and not comma and power:
        return None
    doubt = bool(comma and not points and re.fullmatch(rb"[1-9][0-9]{0,2}", whole) and len(places) == 3)
    text = sign + whole.replace(b".", b"") + comma.replace(b",", b".") + places + power
    return text, bool(comma), points, doubt


def has_commas(raws, kinds, model):
    """23.22: of a column."""
    told = [comma_of(raw) for raw, kind_ in zip(raws, kinds) if kind_ in ("number", "text")]
    if None in told or "infinite" in kinds or not any(comma for _, comma, _, _ in told):
        return False
    return model or (any(comma and not doubt for _, comma, _, doubt in told) and
                     (not any(points and not comma for _, comma, points, _ in told) or
                      any(points and comma for _, comma, points, _ in told)))


@cache
def is_digits(raw):
    return re.fullmatch(rb"[0-9]+", raw) is not None


# ---- lines (2.1.1, 2.1.2) ----


def separator_of(line):
    counts = dict.fromkeys(b",;\t", 0)
    quoted, fresh = False, True
    for byte in line:
        if byte == ord("\n") and not quoted:
            break
        if byte == ord('"') and (quoted or fresh):
            quoted, fresh = not quoted, True
            continue
        if not quoted and byte in counts:
            counts[byte] += 1
        if not quoted:
            fresh = byte in b',;\t"' or (fresh and byte in b" \r")
    return bytes([max(counts, key=counts.get)])  # max gives the first of equals


def row_end(text, at, separator):
    """Where a line ends: a LF in a quoted cell is part of it."""
    blanks = bytes(set(b" \t\r") - set(separator))
    cell = re.compile(rb'[%s]*("(?:[^"]|"")*"[^%s\n]*|[^%s\n]*)' % (blanks, separator, separator),
                      re.S)
    while True:
        at = cell.match(text, at).end()
        if at == len(text) or text[at] == ord("\n"):
            return at
        at += 1


def skip(text, at):
    """Empty lines and comments: where the first line begins, and the last comment."""
    comment = None
    while at < len(text):
        line = text[at:].split(b"\n", 1)[0]
        words = line.lstrip(b" \r")
        if words and words[:1] != b"#":
            return at, comment
        if words:
            comment = words[1:]
        at += len(line) + 1
    return refuse("the file has no line of data")


# ---- the header (2.1.7) ----


def looked_at(text, begin, separator):
    lines = []
    at = begin
    while at < len(text) and len(lines) < LOOK_LINES and (not lines or at < LOOK_BYTES):
        line = text[at:row_end(text, at, separator)]
        lines.append(loosely(line, separator))
        at += len(line) + 1
    return lines


def loosely(line, separator):
    """The raw cells of a line that may be refused later."""
    try:
        return [raw for raw, _ in split(line, separator)]
    except Refused:
        return line.split(separator)


def is_header(first, lines, commas=False):
    """`commas`: numbers of 23.22 count as numbers."""
    def kind_of(raw):
        return "number" if commas and kind(raw) == "text" and comma_of(raw) else kind(raw)
    columns = [[line[k] for line in lines if k < len(line)] for k in range(len(first))]
    kinds = [[kind_of(raw) for raw in column] for column in columns]
    own = [kind_of(raw) for raw in first]
    if "text" in own:
        for top, below in zip(own, kinds):
            numbers, texts = below.count("number"), below.count("text")
            if top in ("text", "none") and numbers > 0 and numbers >= texts:
                return True
        if any(top == "text" and raw in column for top, raw, column in zip(own, first, columns)):
            return False
        return "number" not in own
    counting = first[1:] if first[0] == b"" else first
    if len(first) < 3 or not all(is_digits(raw) and int(raw) == k
                                 for k, raw in enumerate(counting)):
        return False
    if first[0] == b"":
        return True
    odd = 0
    for raw, column, below in zip(first, columns, kinds):
        fractions = {"number", "text"} & set(below) and not any(is_digits(c) for c in column)
        constant = len(lines) >= 10 and len(set(column)) == 1 and column[0] != raw
        odd += bool(fractions or constant)
    return odd >= 2


def name_of(text):
    return text.replace(b"\0", b"\xef\xbf\xbd").decode("utf-8", "replace") or None


# ---- columns (2.1.4, 2.1.5) ----


def column_of(word, names):
    found = [k for k, name in enumerate(names) if name == word]
    if len(found) > 1:
        refuse(f"several columns are named {word}")
    if found:
        return found[0]
    number = len(names) if word == "last" else int(word) if word.isdigit() else 0
    if not 1 <= number <= len(names):
        refuse(f"no column {word}")
    return number - 1


def columns_of(words, names):
    chosen = set()
    for word in words:
        part = re.fullmatch(r"([0-9]+)-([0-9]+|last)", word)
        if part and word not in names:
            last = len(names) if part[2] == "last" else int(part[2])
            chosen |= set(range(int(part[1]) - 1, last))
        else:
            chosen.add(column_of(word, names))
    return chosen


@cache
def number_of(text):
    value = from_text(text.decode("ascii"))
    if not np.isfinite(value):
        refuse("a number is beyond the range of float")
    return value


def utf8(text):
    if b"\0" in text:
        refuse("a text holds a zero byte")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return refuse("a text is not UTF-8")


def feature(cells, known=False, rules=frozenset(), model=False):
    """(values, categories) of a column; no categories where it holds numbers. `known`: somebody said
    that it holds categories."""
    kinds = ["missing" if "none" in rules and is_mark(raw) else kind(raw) for raw, _ in cells]
    if "commas" in rules and not known and has_commas([raw for raw, _ in cells], kinds, model):
        return [np.float32(np.nan) if kind_ in ("missing", "none") else number_of(comma_of(raw)[0])
                for kind_, (raw, _) in zip(kinds, cells)], []
    known = known and set(kinds) - {"missing"}
    if known or kinds.count("text") > kinds.count("number"):
        texts = {utf8(text) for kind_, (_, text) in zip(kinds, cells) if kind_ != "missing"}
        categories = sorted(texts, key=lambda text: text.encode())
        index = {text: np.float32(k) for k, text in enumerate(categories)}
        return [np.float32(np.nan) if kind_ == "missing" else index[utf8(text)]
                for kind_, (_, text) in zip(kinds, cells)], categories
    if "text" in kinds or "infinite" in kinds:
        refuse("a cell is not a number")
    return [number_of(raw) if kind_ == "number" else np.float32(np.nan)
            for kind_, (raw, _) in zip(kinds, cells)], []


def dates_in(cells, rules, form):
    """23.10: the moments of a column and whether one names a time, or None."""
    if "dates" not in rules:
        return None
    gone = [kind(raw) == "missing" or ("none" in rules and is_mark(raw)) for raw, _ in cells]
    return dates.column([None if missing else text.decode("utf-8", "replace")
                         for missing, (_, text) in zip(gone, cells)], form)


def class_name(kind_, raw, text):
    if kind_ != "number":
        return 1, 0, utf8(text)
    value = Fraction(raw.decode())
    if value.denominator == 1:
        if abs(value) >= 2**31:
            refuse("a label is 2^31 or more")
        return 0, value, str(value)
    return 0, Fraction(float(number_of(raw))), to_text(number_of(raw))


def rules_of(cells, known, categories, rules, model):
    """23.21 and 23.22: what changed something in a column of features."""
    kinds = [kind(raw) for raw, _ in cells]
    marks = {kind_ for kind_, (raw, _) in zip(kinds, cells) if is_mark(raw)}
    after = ["missing" if "none" in rules and is_mark(raw) else kind_ for kind_, (raw, _) in zip(kinds, cells)]
    changed = {"none"} if "text" in marks or ("none" in marks and (known or categories)) else set()
    if not known and has_commas([raw for raw, _ in cells], after, model):
        changed |= {"commas"}
    return changed & rules


def comma_label(cells, task, rules, model):
    """23.22: whether the label has commas."""
    kinds = [kind(raw) for raw, _ in cells]
    return ("commas" in rules and task != "classify" and "none" not in kinds and
            has_commas([raw for raw, _ in cells], kinds, model))


def label(cells, task, outputs, rules=frozenset(), model=False):
    """(labels, target, classes)."""
    kinds = [kind(raw) for raw, _ in cells]
    if comma_label(cells, task, rules, model):
        cells = [(comma_of(raw)[0],) * 2 if kind_ != "missing" else (raw, text)
                 for kind_, (raw, text) in zip(kinds, cells)]
        kinds = [kind(raw) for raw, _ in cells]
    if "missing" in kinds or "infinite" in kinds:
        refuse("a label is missing or infinite")
    numbers = kinds.count("number")
    texts = kinds.count("text") + kinds.count("none")
    whole = all(Fraction(raw.decode()).denominator == 1
                for kind_, (raw, _) in zip(kinds, cells) if kind_ == "number")
    if task == "regress" or (task == "auto" and texts <= numbers and not whole):
        if numbers < len(kinds):
            refuse("a target is not a finite number")
        return np.array([number_of(raw) for raw, _ in cells], np.float32), "real", []
    if task == "auto" and texts <= numbers and numbers < len(kinds):
        refuse("a label is a text among numbers")
    names = [class_name(kind_, *cell) for kind_, cell in zip(kinds, cells)]
    distinct = sorted(set(names), key=lambda name: (name[0], name[1], name[2].encode()))
    if numbers == len(kinds) and whole:
        most = distinct[-1][1]
        if distinct[0][1] >= 0 and (most + 1 <= 2 * len(distinct) or most < outputs):
            return np.array([int(name[1]) for name in names], np.uint32), "index", []
    place = {name: k for k, name in enumerate(distinct)}
    return (np.array([place[name] for name in names], np.uint32), "class",
            [name[2] for name in distinct])


# ---- the whole ----


def is_byte(raw):
    return is_digits(raw) and int(raw) <= 255


def rows_of(text, separator):
    rows, at = [], 0
    while at <= len(text):
        end = row_end(text, at, separator)
        line, at = text[at:end], end + 1
        if not line.strip(b" \r" if separator == b"\t" else b" \r\t"):
            refuse("a line is empty")
        rows.append(split(line, separator))
    if len({len(row) for row in rows}) > 1:
        refuse("lines have different numbers of cells")
    return rows


def names_in(comment, separator):
    """The cells of a comment; none where its quotes do not pair."""
    try:
        return split(comment, separator)
    except Refused:
        return []


def separator_by_rules(line):
    """23.22: the separator of a first line for which 2.1.2 gives a comma."""
    for separator in b";", b"\t":
        cells = loosely(line, separator)
        told = [comma_of(raw) for raw in cells]
        if len(cells) > 1 and None not in told and any(comma for _, comma, _, _ in told):
            return separator
    return b","


def read_lines(content, header, rules=RULES):
    """(names or None, rows, separator)."""
    text = content[3:] if content[:3] == b"\xef\xbb\xbf" else content
    text = text.rstrip(b"\r\n ")
    begin, comment = skip(text, 0)
    separator = separator_of(text[begin:])
    if separator == b"," and "commas" in rules:
        separator = separator_by_rules(text[begin:].split(b"\n", 1)[0])
    end = row_end(text, begin, separator)
    first = split(text[begin:end], separator)
    below = (text[end + 1:] or text[begin:]).split(b"\n", 1)[0]
    spaced = [word for word in re.split(rb"[ \r]+", below) if kind(word) == "number"]
    if len(first) == 1 and len(spaced) > 1:
        refuse("spaces separate the cells")
    raw = [cell for cell, _ in first]
    shift = len(content) - len(content.removeprefix(b"\xef\xbb\xbf"))
    lines = looked_at(content[:shift] + text, shift + end + 1, separator)
    commas = "commas" in rules and separator != b","
    named = is_header(raw, lines, commas) if header == "auto" else header == "yes"
    if comment is not None and header != "no" and len(raw) > 1 and (
            not named or (header == "yes" and not any(kind(cell) == "text" for cell in raw))):
        cells = names_in(comment, separator)
        if len(cells) == len(raw) and any(kind(cell) == "text" for cell, _ in cells):
            return [name_of(cell) for _, cell in cells], rows_of(text[begin:], separator), separator
    if not named:
        return None, rows_of(text[begin:], separator), separator
    return [name_of(cell) for _, cell in first], rows_of(text[end + 1:], separator), separator


def read_lines_as(content, header, rules):
    """Names and separator; None where the file is refused."""
    try:
        names, _, separator = read_lines(content, header, rules)
    except Refused:
        return None
    return names, separator


class Table(dict):
    """The table of 11.6, and the rules of 23.2 that changed something."""

    rules = ""
    texts = {}  # of columns of texts, by their number


def weights(content, word, rules=RULES):
    """2.1.5: the weights, and the name of their column."""
    names, rows, _ = read_lines(content, "auto", rules)
    at = column_of(word, names or [None] * len(rows[0]))
    if any(kind(row[at][0]) != "number" for row in rows):
        refuse("a weight is not a number")
    values = np.array([number_of(row[at][0]) for row in rows], np.float32) + np.float32(0)
    if (values < 0).any() or not (values > 0).any():
        refuse("a weight is negative, or all are 0")
    return values, names[at] if names else None


def read(content, word=None, task="auto", header="auto", keep=None, drop=None, outputs=0,
         weight=None, category=(), known=(set(), set()), alone=(), rules=None, parts=None, form="", text=None):
    """`word`: of the label; None: the first; "": none. `weight`: of the weights, which are left
    out. `category`: columns that a user calls categories; `known`: names and places of those of a
    model; `alone`: names of all columns of a model, which has no use for others; `rules`: those of
    its recipe (23.2). None: the file is not read for a model. `parts`: of dates, None: those of 23.12; `form`: of
    dates in text (23.11)."""
    model, rules = rules is not None, RULES if rules is None else rules
    names, rows, separator = read_lines(content, header, rules)
    before = read_lines_as(content, header, rules - {"commas"})
    changed = {"commas"} & rules if before != (names, separator) else set()
    rules = rules - {"commas"} if separator == b"," else rules
    width = len(rows[0])
    names = names or [None] * width
    if len(names) != width:
        refuse("lines have different numbers of cells")
    called = columns_of(category, names)
    said = set() if text in (None, ["none"]) else columns_of(text, names)
    finds = "text" in rules and text != ["none"]
    never, called = called, called | said
    marked = columns_of(keep or drop or [], names)
    weighed = None if weight is None else column_of(weight, names)
    at = next((k for k in range(width) if k not in marked and k != weighed), width - 1)
    several_at = several.list_of(word, names)
    at = None if word == "" or several_at else at if word is None else column_of(word, names)
    chosen = [k for k in range(width) if k not in (at, weighed, *(several_at or ())) and (k in marked) == (keep is not None)]
    if not chosen:
        refuse("no column is left for features")
    if any(names) and known[0]:
        called |= {k for k in chosen if names[k] in known[0]}
    else:
        called |= {k for place, k in enumerate(chosen) if place in known[1]}
    if any(names) and any(alone) and len(chosen) > len(alone):  # 11.7
        chosen = [k for k in chosen if names[k] in alone]
    import texts
    import wide  # it needs this module's neighbour, which needs this one

    cells_of = {k: [row[k] for row in rows] for k in chosen}
    dated = {place: found for place, k in enumerate(chosen) if k not in called
             for found in [dates_in(cells_of[k], rules, form)] if found}
    columns = [(dates.days(dated[place][0]), []) if place in dated
               else feature(cells_of[k], k in called, rules, model) for place, k in enumerate(chosen)]
    changed |= {"dates"} if dated else set()
    changed |= set().union(*(rules_of(cells_of[k], k in called, found[1] or place in dated, rules, model)
                             for place, (k, found) in enumerate(zip(chosen, columns))))
    u8 = not dated and not any(categories for _, categories in columns) and all(is_byte(row[k][0]) for row in rows for k in chosen)
    values = np.array([values for values, _ in columns], np.float32).T
    labels, target, classes = None, "none", []
    if at is not None:
        labels, target, classes = label([row[at] for row in rows], task, outputs, rules, model)
        changed |= {"commas"} & rules if comma_label([row[at] for row in rows], task, rules, model) else set()
    about = {"label": None if at is None else names[at], "target": target, "classes": classes}
    if several_at:
        found = [feature([row[k] for row in rows], k in called, rules, model) for k in several_at]
        changed |= set().union(*(rules_of([row[k] for row in rows], k in called, categories, rules, model)
                                 for k, (_, categories) in zip(several_at, found)))
        labels, about = several.of_columns(found, several_at, names)
    exact = {}
    for place, (k, (_, categories)) in enumerate(zip(chosen, columns)):
        if categories or place in dated or "commas" in rules_of(cells_of[k], k in called, categories, rules, model):
            continue
        found = wide.whole_of([cell.decode() if kind(cell) == "number" else None for cell, _ in cells_of[k]])
        if found:
            exact[place] = found
    bits = {place: texts.bits_of(categories, len(values) - int(np.isnan(values).sum()), k in said)
            for place, (k, (values, categories)) in enumerate(zip(chosen, columns))
            if categories and (k in said or (finds and k not in never))}
    bits = {place: b for place, b in bits.items() if b}
    changed |= {"text"} if bits else set()
    features = [{"name": names[k], "text": bits[place]} if place in bits
                else {"name": names[k], "categories": categories} if categories
                else {"name": names[k], "dates": dates.parts_of(parts, dated[place][0])} if place in dated
                else {"name": names[k], "exact": "whole"} if place in exact else names[k]
                for place, (k, (_, categories)) in enumerate(zip(chosen, columns))]
    table = Table({**about, "features": features, "exact": exact,
                   "moments": {place: moments for place, (moments, _) in dated.items()},
                   "times": {place: moments for place, (moments, timed) in dated.items() if timed}})
    table.rules = " ".join(word for word in ("exact", "dates", "none", "commas", "text")
                           if word in changed or (word == "exact" and exact))
    table.texts = {place: columns[place][1] for place in bits}
    return values.astype(np.uint8) if u8 else values, labels, table
