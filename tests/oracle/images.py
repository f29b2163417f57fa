"""2.9 of docs/exactness.md: images of other sizes, in whole numbers of any length."""

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


def resize(image, how):
    """image: [row][column] or [row][column][channel], bytes; how: the text of --resize."""
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
