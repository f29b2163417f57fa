"""Image files of kinds that Pillow does not write, made from their parts, and Exif data."""

import struct

import numpy as np


def exif(orientation, order="<", kind=3, count=1, tag=0x112):
    """A TIFF structure with one tag."""
    value = struct.pack(order + {1: "B3x", 3: "H2x", 4: "I"}[kind], orientation)
    return ((b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, 1)
            + struct.pack(order + "HHI", tag, kind, count) + value + struct.pack(order + "I", 0))


def with_app1(jpeg, content):
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content + jpeg[2:]


SIZES = {1: "B", 2: "B", 3: "H", 4: "I", 16: "Q"}


def tiff(tags, parts, order="<", big=False, tiles=False):
    """tags: {number: values, or (type, values)}; parts: the bytes of each strip or tile."""
    def of(values, kind=None):
        values = values if isinstance(values, (list, tuple)) else [values]
        kind = kind or (3 if max(values) < 65536 else 4)
        return kind, len(values), struct.pack(f"{order}{len(values)}{SIZES[kind]}", *values)

    made = bytearray((b"II" if order == "<" else b"MM")
                     + (struct.pack(order + "HHHQ", 43, 8, 0, 0) if big else struct.pack(order + "HI", 42, 0)))
    at, wide = [], 8 if big else 4
    for part in parts:
        at.append(len(made))
        made += part + b"\0" * (len(part) % 2)
    fields = {n: of(v[1], v[0]) if isinstance(v, tuple) else of(v) for n, v in tags.items()}
    fields[324 if tiles else 273] = of(at, 4)
    fields[325 if tiles else 279] = of([len(p) for p in parts], 4)
    entries = b""
    for number in sorted(fields):
        kind, count, content = fields[number]
        if len(content) > wide:
            place = len(made)
            made += content + b"\0" * (len(content) % 2)
            content = struct.pack(order + ("Q" if big else "I"), place)
        entries += struct.pack(order + ("HHQ" if big else "HHI"), number, kind, count) + content.ljust(wide, b"\0")
    made[8 if big else 4:16 if big else 8] = struct.pack(order + ("Q" if big else "I"), len(made))
    return bytes(made + struct.pack(order + ("Q" if big else "H"), len(fields)) + entries + b"\0" * wide)


def bits_of(rows, bits):
    """Rows of small numbers, packed from the high bit on, each to whole bytes."""
    each = 8 // bits
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % each))).reshape(len(rows), -1, each)
    return (rows << (bits * np.arange(each - 1, -1, -1))).sum(axis=2).astype(np.uint8)


def bmp(width, height, bits, data, palette=None, compression=0, masks=b"", header=40, colours=0, down=False,
        offset=None):
    """A BMP file of its parts; palette: colours as red, green, blue."""
    table = b"".join(bytes((b, g, r)) + b"\0" * (header != 12) for r, g, b in ([] if palette is None else palette))
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, -height if down else height, 1, bits, compression,
                           len(data), 2835, 2835, colours, 0)
        info = (info + (masks if header > 40 else b"")).ljust(header, b"\0")[:header]
        if header == 40:
            info += masks
    at = 14 + len(info) + len(table) if offset is None else offset
    return struct.pack("<2sIHHI", b"BM", 14 + len(info) + len(table) + len(data), 0, 0, at) + info + table + data


def bmp_rows(rows, down=False):
    """Rows of bytes, filled to four bytes, the lowest first."""
    rows = rows if down else rows[::-1]
    return b"".join(bytes(r) + b"\0" * (-len(bytes(r)) % 4) for r in rows)


def rle8(image):
    """Runs, pixels one by one, and the ends of rows."""
    made = b""
    for row in image[::-1].tolist():
        x = 0
        while x < len(row):
            n = 1
            while x + n < len(row) and row[x + n] == row[x] and n < 255:
                n += 1
            left = min(len(row) - x, 7)
            if n == 1 and left >= 3:
                made += bytes([0, left, *row[x:x + left]]) + b"\0" * (left % 2)
                n = left
            else:
                made += bytes([n, row[x]])
            x += n
        made += b"\0\0"
    return made + b"\0\1"


def gif(screen, frames, palette=None, background=0, trailer=True):
    """frames: (indices, left, top, palette, transparent, interlaced); codes are not compressed."""
    def table(colours):
        bits = max(1, (len(colours) - 1).bit_length())
        return bits - 1, b"".join(bytes(c) for c in colours).ljust(3 << bits, b"\0")

    def codes(values):
        """Nine bits each, with a clear code before the table grows to ten."""
        bits, count = [], 0
        for value in values:
            if count % 200 == 0:
                bits.append(256)
            bits.append(int(value))
            count += 1
        bits.append(257)
        number = sum(v << (9 * i) for i, v in enumerate(bits))
        stream = number.to_bytes((9 * len(bits) + 7) // 8, "little")
        return b"\x08" + b"".join(bytes([len(stream[i:i + 255])]) + stream[i:i + 255]
                                  for i in range(0, len(stream), 255)) + b"\0"

    made = b"GIF89a" + struct.pack("<HH", screen[1], screen[0])
    size, content = table(palette) if palette else (0, b"")
    made += bytes([0x80 * bool(palette) | size, background, 0]) + content
    for indices, left, top, own, transparent, interlaced in frames:
        made += b"!\xfe\x07comment\0"
        if transparent is not None:
            made += b"!\xf9\x04" + bytes([1, 0, 0, transparent]) + b"\0"
        size, content = table(own) if own else (0, b"")
        height, width = indices.shape
        made += b"," + struct.pack("<HHHH", left, top, width, height)
        made += bytes([0x80 * bool(own) | 0x40 * bool(interlaced) | size]) + content
        rows = ([*range(0, height, 8), *range(4, height, 8), *range(2, height, 4), *range(1, height, 2)]
                if interlaced else range(height))
        made += codes(indices[list(rows)].ravel())
    return made + (b";" if trailer else b"")


def riff(*chunks):
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(c)) + c + b"\0" * (len(c) % 2) for name, c in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body
