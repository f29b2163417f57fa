"""Arrays of NumPy for tests/recipes.py, made by Python alone."""

import struct


def write_npy(path, shape, values, kind="|u1"):
    """An array of bytes, or of the type `kind`."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}}}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + bytes(values))


def write(files, pixels):
    """Images with several targets: classes of pixels, of 18 and of 2, and 17 labels; 255 does not count."""
    small = [[row[28 * y + x] for y in range(1, 28, 4) for x in range(1, 28, 4)] for row in pixels]
    shape, where = (len(small), 7, 7), [(i, k, row[k]) for i, row in enumerate(small) for k in range(49)]
    none = {(i, k) for i, k, _ in where if i == 0 or (i + k) % 7 == 3}
    write_npy(files["small"], shape, [value for _, _, value in where])
    write_npy(files["masks"], shape, [255 if (i, k) in none else (value // 16 + k // 20) % 18 for i, k, value in where])
    write_npy(files["halves"], shape, [255 if (i, k) in none else value > 99 for i, k, value in where])
    write_npy(files["flags"], (len(small), 17), [255 if (i, k) in none else value > 60 + 9 * k
                                                 for i, k, value in where if k < 17])


def write_tokens(files, pixels, kinds):
    """25.40: numbers of tokens of 16 bits, up to the largest, and of 32 bits; and a class for each item."""
    rows = [[row[k] % 61 if k % 5 else (row[k] * 257 + k) % 65536 for k in range(3, 784, 23)] for row in pixels]
    far = [[value + 2**24 * (value % 7 == 3) for value in row] for row in rows]
    for name, kind, form, table in ("ids", "<u2", "H", rows), ("ids32", ">u4", "I", far):
        flat = [value for row in table for value in row]
        write_npy(files[name], (len(table), len(table[0])), struct.pack(f"{kind[0]}{len(flat)}{form}", *flat), kind)
    write_npy(files["ids_labels"], (len(rows),), kinds)
    # 25.14: every fifth item ends early.
    ends = [[65535 if i % 5 == 2 and k > 5 else (row[180 + 37 * k] * 7 + k // 4) % 40 for k in range(10)]
            for i, row in enumerate(pixels)]
    flat = [value for row in ends for value in row]
    write_npy(files["next"], (len(ends), 10), struct.pack(f"<{len(flat)}H", *flat), "<u2")
    # 25.37: items of all lengths from 0, and a number that is not a token before others.
    short = [[value if value < 40 and k < i * 7 % 11 and (k, i % 4) != (2, 0) else 65535 for k, value in enumerate(row)]
             for i, row in enumerate(ends)]
    flat = [value for row in short for value in row]
    write_npy(files["lengths"], (len(short), 10), struct.pack(f"<{len(flat)}H", *flat), "<u2")
    # 25.39: a class for each of them, and three numbers for one that does not count.
    none = {0: -100, 3: 65535, 4: 255}
    flat = [none.get((i + k) % 9, (value + k) % 5) for i, row in enumerate(ends) for k, value in enumerate(row)]
    write_npy(files["tags"], (len(ends), 10), struct.pack(f"<{len(flat)}i", *flat), "<i4")
