"""Arrays and tables for gpu_check_steps.py, written without any package."""

import array
import random
import struct

# Type of an NPY file: type of the module array.
CODES = {"<f8": "d", "<f4": "f", "|i1": "b", "|u1": "B", "<i4": "i", "<u2": "H", "<i8": "q"}


def npy(path, kind, shape, numbers):
    """An NPY file of these numbers, little-endian, in C order."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({''.join(f'{n}, ' for n in shape)}), }}"
    text = text.ljust(117) + "\n"
    body = array.array(CODES[kind], numbers)
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        body.byteswap()
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body.tobytes())


def normal(draw, count, spread=1.0):
    """Of many numbers each comes several times, which takes a tenth of the time."""
    block = [draw.gauss(0.0, spread) for _ in range(min(count, 4096))]
    return block if len(block) == count else draw.choices(block, k=count)


def for_kernels(folder):
    """The arrays of tests/device_kernels.py: {name: file} is not needed, a file has its array's name."""
    draw = random.Random(11)
    rows, columns = 37, 53
    count = rows * columns
    wide = [draw.gauss(0, 1) * 10.0 ** draw.randint(-3, 11) for _ in range(count)]
    wide[:4] = [float("inf"), float("-inf"), 2.0**63, -0.0]
    whole = [draw.randint(-2**31, 2**31 - 1) for _ in range(count)]
    whole[:3] = [-2**31] * 3
    floats, bytes_, marks = normal(draw, count), [draw.randint(-128, 127) for _ in range(count)], \
        [draw.randint(1, 99) for _ in range(count)]
    for name, kind, numbers in (("x", "<f8", wide), ("f", "<f4", floats), ("b", "|i1", bytes_),
                                ("n", "<i4", whole), ("m", "<u2", marks)):
        npy(folder / f"{name}.npy", kind, (rows, columns), numbers)
    npy(folder / "w.npy", "<f8", (5, 7), normal(draw, 35))
    npy(folder / "n1.npy", "<i4", (count,), whole)
    npy(folder / "f1.npy", "<f4", (count,), floats)
    steps = [i + 0.5 for i in range(5000)]
    npy(folder / "y.npy", "<f8", (5000,), steps)
    npy(folder / "h.npy", "<f4", (5000,), steps)
    for name, shape in (("1d", (1961,)), ("3d", (5, 17, 23)), ("2d", (61, 47))):
        size = 1
        for length in shape:
            size *= length
        for letter in "uq":
            npy(folder / f"{letter}{name}.npy", "<f4", shape, normal(draw, size))
    npy(folder / "s.npy", "<f4", (300_000,), range(300_000))
    for name in ("price", "strike", "years"):
        npy(folder / f"{name}.npy", "<f8", (20_000,), [draw.uniform(1, 100) for _ in range(20_000)])
    for name in ("bx", "by", "bz", "bvx", "bvy", "bvz", "mass"):
        npy(folder / f"{name}.npy", "<f8", (300,), [draw.uniform(0.1, 1) for _ in range(300)])
    npy(folder / "centre.npy", "<f8", (9, 2), [draw.uniform(1, 100) for _ in range(18)])


def streamed(folder, count):
    """Arrays of so many items for device_kernels.STREAMED."""
    draw = random.Random(3)
    block = 65536
    repeat = -(-count // block)
    for name, kind, numbers in (("sx", "<f8", normal(draw, block)), ("sf", "<f4", [draw.random() for _ in range(block)]),
                                ("sb", "|i1", [draw.randint(-128, 127) for _ in range(block)])):
        npy(folder / f"{name}.npy", kind, (count,), (numbers * repeat)[:count])
    npy(folder / "sw.npy", "<f4", (7,), [draw.random() for _ in range(7)])


def tables(folder, rows):
    """Tables for statistics, as tests/test_statistics_devices.py has them: {name: (file, words)}."""
    draw = random.Random(4)
    full = normal(draw, rows * 19)
    full[3::19] = [value * 1e-42 for value in full[3::19]]
    npy(folder / "full.npy", "<f4", (rows, 19), full)
    npy(folder / "wide.npy", "<f4", (rows, 60), normal(draw, rows * 60))
    npy(folder / "bytes.npy", "|u1", (rows, 33), [draw.randrange(256) for _ in range(rows * 33)])
    (folder / "labelled.csv").write_text("x,y,kind\n" + "".join(
        f"{draw.gauss(0, 1):.3g},{draw.gauss(0, 1):.3g},{'ab'[i % 2]}\n" for i in range(300)))
    (folder / "classes.csv").write_text("x,z,kind,y\n" + "".join(
        f"{draw.gauss(0, 1):.3g},{'' if i % 7 == 0 else format(draw.gauss(0, 1), '.3g')},{'abc'[i % 3]},"
        f"{'v' if i < 4100 else 'uw'[i % 2]}\n" for i in range(12500)))
    return {"full": ("full.npy", ["--unlabelled"]), "wide": ("wide.npy", ["--unlabelled"]),
            "bytes": ("bytes.npy", ["--unlabelled"]), "labelled": ("labelled.csv", ["--label", "y"]),
            "classes": ("classes.csv", ["--label", "y", "--by-class"])}


def idx_images(images, labels, shape, items):
    """IDX files of bytes that a network can learn: a pattern for each of ten classes, and noise."""
    draw, size = random.Random(5), 1
    for length in shape:
        size *= length
    patterns = [draw.randbytes(size) for _ in range(10)]
    kinds = [draw.randrange(10) for _ in range(items)]
    noise = [draw.randbytes(size) for _ in range(64)]
    with open(images, "wb") as out:
        out.write(bytes([0, 0, 8, 1 + len(shape)]) + struct.pack(f">{1 + len(shape)}I", items, *shape))
        for i, kind in enumerate(kinds):
            mix = int.from_bytes(patterns[kind], "big") & int.from_bytes(noise[i % 64], "big")
            out.write(mix.to_bytes(size, "big"))
    with open(labels, "wb") as out:
        out.write(bytes([0, 0, 8, 1]) + struct.pack(">I", items) + bytes(kinds))
