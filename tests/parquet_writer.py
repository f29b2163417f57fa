"""Writes Parquet files as plain as they can be, without pyarrow: one page a column in each row group, PLAIN,
nothing compressed, no value missing (parquet.thrift of Apache Parquet; structs by Thrift's compact protocol)."""

import struct

import numpy as np

INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY = 1, 2, 3, 4, 5, 6
TYPES = {"i4": INT32, "i8": INT64, "V12": INT96, "f4": FLOAT, "f8": DOUBLE}
DECIMAL, NULL_TYPE = 5, {10: {11: {}}}
DATE, TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS = 6, 7, 8, 9, 10
DATA_PAGE = PLAIN = UNCOMPRESSED = REQUIRED = UTF8 = 0
RLE = 3


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


def write(path, columns, group, converted=(), more=()):
    """`columns`: {name: an array of TYPES, or a list of texts}, in row groups of `group` rows. `converted`: {name:
    a ConvertedType} of some; `more`: {name: further fields of its SchemaElement}."""
    rows = len(next(iter(columns.values())))
    types = {name: TYPES[v.dtype.str[1:]] if isinstance(v, np.ndarray) else BYTE_ARRAY for name, v in columns.items()}
    converted = {**{name: UTF8 for name, t in types.items() if t == BYTE_ARRAY}, **dict(converted)}
    groups = []
    with open(path, "wb") as file:
        file.write(b"PAR1")
        for first in range(0, rows, group):
            chunks, count = [], min(group, rows - first)
            for name, values in columns.items():
                page, at = plain(values[first:first + count]), file.tell()
                file.write(record({1: DATA_PAGE, 2: len(page), 3: len(page),
                                   5: {1: count, 2: PLAIN, 3: RLE, 4: RLE}}) + page)
                size = file.tell() - at
                chunks.append({2: at, 3: {1: types[name], 2: [PLAIN, RLE], 3: [name.encode()], 4: UNCOMPRESSED,
                                          5: count, 6: size, 7: size, 9: at}})
            groups.append({1: chunks, 2: sum(c[3][7] for c in chunks), 3: count})
        leaves = [{1: t, 3: REQUIRED, 4: name.encode()} | ({6: converted[name]} if name in converted else {})
                  | dict(more).get(name, {}) for name, t in types.items()]
        footer = record({1: 1, 2: [{4: b"schema", 5: len(leaves)}, *leaves], 3: rows, 4: groups})
        file.write(footer + struct.pack("<I", len(footer)) + b"PAR1")
