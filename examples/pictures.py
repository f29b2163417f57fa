#!/usr/bin/env python3
"""Pictures of what the kernels of examples/kernels write, with NumPy alone.

    examples/pictures.py colours red.npy green.npy blue.npy -o scene.png
    examples/pictures.py map u1.npy u2.npy -o plate.png           dark is the least number
    examples/pictures.py rotation u1.npy v1.npy u2.npy v2.npy -o vortex.png   red turns to the left
    examples/pictures.py points x1.npy y1.npy x2.npy y2.npy -o bodies.png     where many points are
    examples/pictures.py drift kinetic.npy potential.npy -o energy.svg        change of the sum of series

Several arrays, or pairs of arrays, become pictures side by side.
"""

import argparse
import struct
import zlib

import chart
import numpy

# Dark blue over red to light yellow; and blue over white to red.
HEAT = numpy.array([[13, 8, 60], [90, 20, 130], [190, 50, 90], [245, 130, 40], [250, 240, 130]])
SIGNED = numpy.array([[20, 40, 110], [90, 140, 210], [250, 250, 250], [225, 110, 80], [120, 15, 30]])


def write_png(path, pixels):
    """pixels: uint8 [height][width][3]."""
    height, width = pixels.shape[:2]
    rows = numpy.zeros((height, 1 + 3 * width), "uint8")
    rows[:, 1:] = pixels.reshape(height, -1)
    rows[1:, 1:] -= rows[:-1, 1:]  # the filter "up", which makes even areas zeros
    rows[1:, 0] = 2
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in ((b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)),
                           (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))


def coloured(part, palette, steps=64):
    """Numbers from 0 to 1 to colours, in steps, so that lines of equal numbers can be seen."""
    at = numpy.clip(numpy.floor(part * steps) / (steps - 1), 0, 1) * (len(palette) - 1)
    low = numpy.minimum(at.astype(int), len(palette) - 2)
    mixed = palette[low] + (at - low)[..., None] * (palette[low + 1] - palette[low])
    return numpy.rint(mixed).astype("uint8")


def beside(pictures):
    gap = numpy.full((pictures[0].shape[0], 6, 3), 255, "uint8")
    parts = [gap] * (2 * len(pictures) - 1)
    parts[::2] = pictures
    return numpy.hstack(parts)


def colours(arrays):
    return numpy.dstack(arrays)


def map_of(arrays):
    least, most = min(a.min() for a in arrays), max(a.max() for a in arrays)
    return beside([coloured((a - least) / ((most - least) or 1), HEAT, 20) for a in arrays])


def rotation(arrays):
    """The vorticity of velocities on the C grid; the first row is the south."""
    spins = [(v - numpy.roll(v, 1, 1)) - (u - numpy.roll(u, 1, 0)) for u, v in zip(arrays[::2], arrays[1::2])]
    for s in spins:
        s[0] = 0
    most = max(abs(s).max() for s in spins)
    # The root shows what is weak.
    return beside([coloured(0.5 + 0.5 * numpy.sign(s) * numpy.sqrt(abs(s) / most), SIGNED)[::-1] for s in spins])


def points(arrays, size=230):
    pictures = []
    for x, y in zip(arrays[::2], arrays[1::2]):
        reach = 3
        inside = (abs(x) < reach) & (abs(y) < reach)
        at = [((1 + s * c[inside] / reach) * size / 2).astype(int) for s, c in ((-1, y), (1, x))]
        count = numpy.zeros((size, size))
        numpy.add.at(count, tuple(at), 1)
        pictures.append(coloured(numpy.sqrt(numpy.minimum(count, 6) / 6), HEAT))
    return beside(pictures)


def write_drift(path, series):
    """The sum of series, as the change against its first number."""
    total = sum(series)
    change = total / total[0] - 1
    most = max(abs(change).max(), 1e-16)
    drawn = chart.Chart("Relative change of the sum", "iteration", (0, len(total)), "", (-1.1 * most, 1.1 * most))
    drawn.line(range(len(change)), change, chart.COLOURS[0])
    drawn.save(path)
    print(f"largest change: {most:.2g}, at the end: {change[-1]:.2g}")


def main():
    kinds = {"colours": colours, "map": map_of, "rotation": rotation, "points": points, "drift": None}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("files", nargs="+", metavar="FILE.npy")
    parser.add_argument("-o", "--out", required=True, metavar="PICTURE")
    args = parser.parse_args()
    needed = {"colours": 3, "rotation": 2, "points": 2}.get(args.kind, 1)
    if len(args.files) % needed or (args.kind == "colours" and len(args.files) != needed):
        parser.error(f"{args.kind} takes {'' if args.kind == 'colours' else 'a multiple of '}{needed} files")
    arrays = [numpy.load(f) for f in args.files]
    if args.kind == "drift":
        write_drift(args.out, arrays)
    else:
        write_png(args.out, kinds[args.kind](arrays))


if __name__ == "__main__":
    main()
