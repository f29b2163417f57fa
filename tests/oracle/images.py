"""2.9 and 24.50 of docs/exactness.md: images of other sizes."""

import math
import re

import numpy as np


def weights(n, m):
    """[pixel of the result][pixel of the image], and the sum of each row."""
    made = [[0] * n for _ in range(m)]
    for j in range(m):
        if m < n:
            for i in range(n):
                made[j][i] = max(0, min((j + 1) * n, (i + 1) * m) - max(j * n, i * m))
        else:
            p = min(max((2 * j + 1) * n - m, 0), 2 * m * (n - 1))
            i, f = divmod(p, 2 * m)
            made[j][i] = 2 * m - f
            if f:
                made[j][i + 1] = f
    return np.array(made, dtype=object), n if m < n else 2 * m


def cubic(x):
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * -0.5 if x < 2 else 0.0


def filtered(n, m, name):
    """[pixel of the result][pixel of the image], in units of 2^-22."""
    made = np.zeros((m, n), np.int64)
    s = n / m
    g = max(s, 1.0)
    reach, q = (2 if name == "bicubic" else 1) * g, 1 / g
    for j in range(m):
        c = (j + 0.5) * s
        first, end = max(math.trunc(c - reach + 0.5), 0), min(math.trunc(c + reach + 0.5), n)
        places = [abs((i - c + 0.5) * q) for i in range(first, end)]
        raw = [cubic(x) if name == "bicubic" else max(1 - x, 0.0) for x in places]
        u = 0.0
        for w in raw:
            u += w
        for i, w in enumerate(raw, first):
            v = w / u * 2**22
            made[j][i] = math.trunc(v + 0.5 if v >= 0 else v - 0.5)
    return made


def pass_along(axis, weights, values):
    total = np.moveaxis(np.tensordot(weights, values.astype(np.int64), (1, axis)), 0, axis)
    return np.clip((total + 2**21) >> 22, 0, 255)


def resize(image, how):
    """image: [row][column] or [row][column][channel], bytes; how: the text of --resize."""
    name = re.search(r" (bilinear|bicubic)$", how)
    if name:
        return resize_filtered(image, how[:name.start()], name[1])
    return resize_exactly(image, how)


def resize_filtered(image, how, name):
    height, width = image.shape[:2]
    short = re.fullmatch(r"short (\d+) crop (\d+)(?:x(\d+))?", how)
    if short:
        rows, columns = int(short[2]), int(short[3] or short[2])
        made = [side * int(short[1]) // min(height, width) for side in (height, width)]
    else:
        made = rows, columns = [int(side) for side in how.split("x")]
    passes = [(1, filtered(width, made[1], name)), (0, filtered(height, made[0], name))]
    if made[0] < height and 2 * (width - made[1]) < height - made[0]:
        passes.reverse()
    for axis, weights in passes:
        image = pass_along(axis, weights, image)
    top, left = round((made[0] - rows) / 2), round((made[1] - columns) / 2)
    return image[top:top + rows, left:left + columns].astype(np.uint8)


def resize_exactly(image, how):
    """2.9, in whole numbers of any length."""
    height, width = image.shape[:2]
    short = re.fullmatch(r"short (\d+) crop (\d+)(?:x(\d+))?", how)
    if short:
        s, rows, columns = int(short[1]), int(short[2]), int(short[3] or short[2])
        least = min(height, width)
        made = [s if side == least else (2 * side * s + least) // (2 * least) for side in (height, width)]
    else:
        made = rows, columns = [int(side) for side in how.split("x")]
    y, uy = weights(height, made[0])
    x, ux = weights(width, made[1])
    top, left = (made[0] - rows) // 2, (made[1] - columns) // 2
    y, x = y[top:top + rows], x[left:left + columns]
    total = np.tensordot(y, image.astype(object), (1, 0))  # [y][l] or [y][l][channel]
    total = np.moveaxis(np.tensordot(total, x, (1, 1)), -1, 1)
    return ((2 * total + uy * ux) // (2 * uy * ux)).astype(np.uint8)
