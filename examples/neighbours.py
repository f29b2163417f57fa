#!/usr/bin/env python3
"""Nearest neighbours over the outputs of a layer (quern predict --layer), with NumPy alone.

    neighbours.py classes train.npy train-labels.npy test.npy test-labels.npy    how often they agree
    neighbours.py near train.npy test.npy --items 0,1,2                           which items are nearest
    neighbours.py near train.npy test.npy --items 0,1,2 --pixels train-x.npy test-x.npy -o near.png

The files are arrays with a row for each item. Distances are exact: each item is compared with all. Of equal
distances the first item is nearest. `-k` says how many neighbours. The picture has a row for each item of the
second file: it, and its neighbours.
"""

import argparse

import numpy

BLOCK = 1 << 24  # distances at once


def distances(train, test):
    """The squares of the distances of all pairs: float64, test x train."""
    squares = (test ** 2).sum(1)[:, None] - 2 * test @ train.T + (train ** 2).sum(1)
    return numpy.maximum(squares, 0)


def nearest(train, test, k):
    """The k nearest items of `train` for each of `test`, the nearest first."""
    if train.shape[1:] != test.shape[1:]:
        raise SystemExit(f"items of the two files have {train.shape[1:]} and {test.shape[1:]} numbers: give outputs of one layer")
    train, test = (a.reshape(len(a), -1).astype("float64") for a in (train, test))
    rows = max(1, BLOCK // len(train))
    parts = [numpy.argsort(distances(train, test[at:at + rows]), axis=1, kind="stable")[:, :k]
             for at in range(0, len(test), rows)]
    return numpy.vstack(parts)


def vote(labels):
    """The most frequent label of each row; of equally frequent ones that of the nearest item."""
    counts = (labels[:, :, None] == labels[:, None, :]).sum(2)
    return labels[numpy.arange(len(labels)), counts.argmax(1)]


def classes(args):
    train, known, test, wanted = map(numpy.load, args.files)
    right = vote(known[nearest(train, test, args.k)]) == wanted
    print(f"{args.k} nearest neighbours of {train[0].size} numbers: {100 * right.mean():.2f} % ({right.sum():,} of {len(right):,})")


def sheet(train, test, items, found, columns):
    """The pictures of items and their neighbours in grey, as they are, or as squares."""
    width = columns or round(train[0].size ** 0.5)
    rows = [numpy.hstack([numpy.pad(one.reshape(-1, width), 2, constant_values=shade) for one, shade in
                          zip([test[item], *train[near]], [255] + [90] * len(near))]) for item, near in zip(items, found)]
    return numpy.repeat(numpy.vstack(rows).astype("uint8")[..., None], 3, axis=2)


def near(args):
    train, test = map(numpy.load, args.files)
    found = nearest(train, test[args.items], args.k)
    for item, own in zip(args.items, found):
        print(f"item {item}:", *own)
    if args.pixels:
        import pictures

        pictures.write_png(args.output, sheet(*map(numpy.load, args.pixels), args.items, found, args.columns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run, files, metavar in (("classes", classes, 4, ("TRAIN", "LABELS", "TEST", "LABELS")),
                                      ("near", near, 2, ("TRAIN", "TEST"))):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("files", nargs=files, metavar=metavar)
        command.add_argument("-k", type=int, default=5, help="how many neighbours [5]")
    command.add_argument("--items", type=lambda text: [int(word) for word in text.split(",")], default=[0],
                         help="items of TEST, such as 0,5,7 [0]")
    command.add_argument("--pixels", nargs=2, metavar=("TRAIN", "TEST"), help="the pictures of both, as arrays")
    command.add_argument("--columns", type=int, help="pixels of a row of a picture [those of a square]")
    command.add_argument("-o", "--output", default="near.png", help="the picture to write [near.png]")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
