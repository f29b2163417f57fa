"""Writes Parquet files as plain as they can be, without pyarrow: one page a column in each row group, PLAIN,
nothing compressed, no value missing (parquet.thrift of Apache Parquet; structs by Thrift's compact protocol)."""

import struct

import numpy as np

INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY = 1, 2, 3, 4, 5, 6
TYPES = {"i4": INT32, "i8": INT64, "V12": INT96, "f4": FLOAT, "f8": DOUBLE}
DECIMAL, NULL_TYPE = 5, {10: {11: {}}}
DATE, TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS = 6, 7, 8, 9, 10
DATA_PAGE = PLAIN = UNCOMPRESSED = REQUIRED = UTF8 = 0
RLE = LIST = 3


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def whole(number):
    return varint(number * 2)  # zigzag, not negative


def listed(kind, elements):
    return bytes([min(len(elements), 15) << 4 | kind]) + varint(len(elements)) * (len(elements) > 14) + b"".join(elements)


def record(fields):
    """A struct of {number: value}: ints are i32 or i64, bytes a binary, lists those of one kind, dicts structs."""
    out, before = b"", 0
    for number, value in fields.items():
        kind = 5 if isinstance(value, int) else 8 if isinstance(value, bytes) else 9 if isinstance(value, list) else 12
        step = number - before
        out += bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + whole(number)
        before = number
        if kind == 5:
            out += whole(value)
        elif kind == 8:
            out += varint(len(value)) + value
        elif kind == 12:
            out += record(value)
        elif isinstance(value[0], int):
            out += listed(5, [whole(v) for v in value])
        elif isinstance(value[0], bytes):
            out += listed(8, [varint(len(v)) + v for v in value])
        else:
            out += listed(12, [record(v) for v in value])
    return out + b"\0"


def plain(values):
    if isinstance(values, np.ndarray):
        return values.tobytes()
    return b"".join(struct.pack("<I", len(text)) + text for text in (v.encode() for v in values))


def levels(numbers):
    """Each is a run of one."""
    runs = b"".join(bytes([2, number]) for number in numbers)
    return struct.pack("<I", len(runs)) + runs


def lists(values):
    """A page of lists of texts or of whole numbers, its number of levels, and the type of the elements."""
    flat = [v for of in values for v in of]
    repeats = [int(k > 0) for of in values for k in range(max(1, len(of)))]
    defined = [3 if of else 1 for of in values for _ in range(max(1, len(of)))]
    texts = not flat or isinstance(flat[0], str)
    page = levels(repeats) + levels(defined) + plain(flat if texts else np.array(flat, "i8"))
    return page, len(repeats), BYTE_ARRAY if texts else INT64


def is_lists(values):
    return isinstance(values, list) and isinstance(values[0], list)


def elements(name, kind, more):
    """The elements of the schema for a column of lists: an optional list of optional elements."""
    return [{3: 1, 4: name.encode(), 5: 1, 6: LIST}, {3: 2, 4: b"list", 5: 1},
            {1: kind, 3: 1, 4: b"element"} | ({6: UTF8} if kind == BYTE_ARRAY else {}) | more]


def write(path, columns, group, converted=(), more=()):
    """`columns`: {name: an array of TYPES, a list of texts, or one of lists of texts or whole numbers}, in row groups
    of `group` rows. `converted`: {name: a ConvertedType} of some; `more`: {name: further fields of its SchemaElement}."""
    rows = len(next(iter(columns.values())))
    types = {name: lists(v)[2] if is_lists(v) else TYPES[v.dtype.str[1:]] if isinstance(v, np.ndarray) else BYTE_ARRAY
             for name, v in columns.items()}
    converted = {**{name: UTF8 for name, t in types.items() if t == BYTE_ARRAY and not is_lists(columns[name])}, **dict(converted)}
    groups = []
    with open(path, "wb") as file:
        file.write(b"PAR1")
        for first in range(0, rows, group):
            chunks, count = [], min(group, rows - first)
            for name, values in columns.items():
                own, slots, at = values[first:first + count], count, file.tell()
                way = [name.encode()]
                if is_lists(values):
                    page, slots, _ = lists(own)
                    way += [b"list", b"element"]
                else:
                    page = plain(own)
                file.write(record({1: DATA_PAGE, 2: len(page), 3: len(page),
                                   5: {1: slots, 2: PLAIN, 3: RLE, 4: RLE}}) + page)
                size = file.tell() - at
                chunks.append({2: at, 3: {1: types[name], 2: [PLAIN, RLE], 3: way, 4: UNCOMPRESSED,
                                          5: slots, 6: size, 7: size, 9: at}})
            groups.append({1: chunks, 2: sum(c[3][7] for c in chunks), 3: count})
        schema = [elements(name, types[name], dict(more).get(name, {})) if is_lists(v) else None
                  for name, v in columns.items()]
        leaves = [{1: t, 3: REQUIRED, 4: name.encode()} | ({6: converted[name]} if name in converted else {})
                  | dict(more).get(name, {}) for name, t in types.items()]
        flat = [e for leaf, own in zip(leaves, schema, strict=True) for e in own or [leaf]]
        footer = record({1: 1, 2: [{4: b"schema", 5: len(leaves)}, *flat], 3: rows, 4: groups})
        file.write(footer + struct.pack("<I", len(footer)) + b"PAR1")
