#!/usr/bin/env python3
"""k-means with kernels/kmeans.c and the Python package.

    kmeans.py make             writes x.npy and y.npy: 200,000 points around 12 places
    kmeans.py run --groups 12  writes centre.npy and group.npy, prints the groups, draws clusters.png
"""

import argparse
from pathlib import Path

import numpy

KERNEL = Path(__file__).parent / "kernels" / "kmeans.c"


def make(args):
    draw = numpy.random.default_rng(args.seed)
    places, spread = [], draw.uniform(0.3, 1.2, (12, 1))
    while len(places) < 12:
        place = draw.uniform(-10, 10, 2)
        if all(numpy.hypot(*(place - other)) > 4 for other in places):
            places.append(place)
    of = draw.integers(12, size=args.points)
    points = numpy.array(places)[of] + spread[of] * draw.standard_normal((args.points, 2))
    numpy.save("x.npy", points[:, 0].copy())
    numpy.save("y.npy", points[:, 1].copy())


def far_apart(kernel, x, y, groups, seed):
    """First centres: of a few random points one, then each time the one farthest from those before. Among all
    points these would be outliers."""
    some = numpy.random.default_rng(seed).permutation(len(x))[:20 * groups]
    x, y, centre = x[some], y[some], [[x[some[0]], y[some[0]]]]
    while len(centre) < groups:
        item, = kernel.run(x=x, y=y, centre=numpy.array(centre)).farthest.item
        centre.append([x[item], y[item]])
    return numpy.array(centre)


def steps(kernel, x, y, centre, most=300):
    """Moves the centres to the means of their groups until none moves; the last results."""
    for step in range(most):
        r = kernel.run(x=x, y=y, centre=centre)
        some = r.points > 0  # a group without points stays where it is
        moved = centre.copy()
        k = len(centre)
        moved[some[:k]] = numpy.column_stack([r.sum_x, r.sum_y])[some] / r.points[some, None]
        if (moved == centre).all():
            break
        centre = moved
    return centre, r, step


def run(args):
    import quern
    from pictures import write_png
    kernel = quern.Kernel(KERNEL)
    x, y = numpy.load("x.npy"), numpy.load("y.npy")
    if len(x) < args.groups:
        raise SystemExit(f"x.npy has {len(x)} points, fewer than --groups {args.groups}")
    if not 1 <= args.groups <= 16:
        raise SystemExit("--groups is from 1 to 16, as many as the kernel has bins")
    tried = []
    for start in range(1, args.starts + 1):
        tried.append(steps(kernel, x, y, far_apart(kernel, x, y, args.groups, start)))
        print(f"start {start}: {tried[-1][2]} steps, sum of squares {tried[-1][1].squares!r}")
    centre, r, _ = min(tried, key=lambda one: one[1].squares)
    print("group  points         x         y")
    for k in range(args.groups):
        print(f"{k:5} {r.points[k]:7,} {centre[k, 0]:9.5f} {centre[k, 1]:9.5f}")
    numpy.save("centre.npy", centre)
    numpy.save("group.npy", r.group)
    write_png(args.picture, draw(x, y, r.group, centre))


def draw(x, y, group, centre, size=480):
    """A point colours its pixel with its group; centres are black squares."""
    from chart import COLOURS
    colours = [[int(c[k:k + 2], 16) for k in (1, 3, 5)] for c in COLOURS]
    colours = numpy.array(colours + [[(a + 255) // 2 for a in c] for c in colours] + [[120] * 3, [180] * 3], "uint8")
    low, wide = min(x.min(), y.min()), max(x.max() - x.min(), y.max() - y.min()) or 1
    pixels = numpy.full((size, size, 3), 255, "uint8")

    def places(a):
        return numpy.clip((a - low) / wide * (size - 1), 0, size - 1).astype(int)
    pixels[size - 1 - places(y), places(x)] = colours[group]
    for a, b in centre:
        column, row = places(a), size - 1 - places(b)
        pixels[max(row - 3, 0):row + 4, max(column - 3, 0):column + 4] = 0
    return pixels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("--groups", type=int, default=12, help="of run; default 12")
    parser.add_argument("--starts", type=int, default=4, help="of run: the best of so many is taken; default 4")
    parser.add_argument("--points", type=int, default=200_000, help="of make; default 200000")
    parser.add_argument("--seed", type=int, default=1, help="of make; default 1")
    parser.add_argument("--picture", default="clusters.png", help="of run; default clusters.png")
    args = parser.parse_args()
    {"make": make, "run": run}[args.what](args)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        raise SystemExit(f"{error.filename}: {error.strerror}") from None
