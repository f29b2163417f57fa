"""24.52 to 24.56: the words of an augmentation that make new bytes. A picture is [channel][row][column]."""

from functools import lru_cache

import numpy as np

import elementary
from binary32 import F, ONE, fma, from_text


def of_one(function):
    return lru_cache(lambda x: function(np.array([x], np.float32))[0])


exp, log, cospi = map(of_one, (elementary.exp, elementary.log, elementary.cospi))
# 24.52: the parameters of each word in their order, with their defaults.
PARAMETERS = {
    "resizedcrop": {"scale": [F(0.08), ONE], "ratio": [F(0.75), F(4 / 3)]},
    "jitter": {"brightness": [F(0)], "contrast": [F(0)], "saturation": [F(0)], "hue": [F(0)]},
    "rotate": {"": [], "bilinear": [], "fill": [F(0)]},
    "blur": {"": [], "sigma": [F(0.1), F(2)]},
}


def parse(name, parts):
    """The parameters that are said, in the order of the table; without defaults."""
    known, said = PARAMETERS[name], {}
    if "" in known:
        said[""], parts = [from_text(parts[0])], parts[1:]
    while parts:
        count = len(known[parts[0]])
        said[parts[0]], parts = [from_text(x) for x in parts[1:1 + count]], parts[1 + count:]
    return {key: said[key] for key in known if key in said and (not known[key] or said[key] != known[key])}


def whole(x):
    return int(np.rint(x))


class Draws:
    def __init__(self, words):
        self.words = words

    def r(self, j, m):
        return self.words[j] * m // 2**32

    def between(self, j, a, b):
        u = F(self.words[j] // 256) / F(2**24)
        return fma(u, b - a, a)


def window(draws, scale, ratio, high, wide):
    """24.53: first row and column, rows and columns."""
    for k in range(10):
        area = draws.between(8 + 2 * k, *scale) * (F(high) * F(wide))
        q = exp(draws.between(9 + 2 * k, log(ratio[0]), log(ratio[1])))
        w, h = whole(np.sqrt(area * q)), whole(np.sqrt(area / q))
        if 1 <= w <= wide and 1 <= h <= high:
            return draws.r(28, high - h + 1), draws.r(29, wide - w + 1), h, w
    s, w, h = F(wide) / F(high), wide, high
    if s < ratio[0]:
        h = min(max(whole(F(wide) / ratio[0]), 1), high)
    elif s > ratio[1]:
        w = min(max(whole(F(high) * ratio[1]), 1), wide)
    return (high - h) // 2, (wide - w) // 2, h, w


def stretched(many, few):
    """Both taps and the share of the second one."""
    x = np.arange(many, dtype=np.int64)
    p = np.clip((512 * (2 * x + 1) * few + 2 * many) // (4 * many) - 128, 0, 256 * (few - 1))
    return p // 256, np.minimum(p // 256 + 1, few - 1), p % 256


def four(v, rows, columns):
    """The sum over four taps of arrays of indices and shares that fit each other."""
    (y0, y1, g), (x0, x1, f) = rows, columns
    above = (256 - f) * v[:, y0, x0] + f * v[:, y0, x1]
    below = (256 - f) * v[:, y1, x0] + f * v[:, y1, x1]
    return ((256 - g) * above + g * below + 2**15) >> 16


def resizedcrop(v, draws, scale, ratio):
    _, high, wide = v.shape
    top, left, h, w = window(draws, scale, ratio, high, wide)
    rows = [a[:, None] for a in stretched(high, h)]
    return four(v[:, top:top + h, left:left + w], rows, stretched(wide, w))


def grey(v):
    return (19595 * v[0] + 38470 * v[1] + 7471 * v[2] + 2**15) >> 16


def blend(v, factor, g):
    return np.clip((factor * v + (2**16 - factor) * g + 2**15) >> 16, 0, 255)


def hue(v, turn):
    most, least = v.max(0), v.min(0)
    d, (red, green, blue) = most - least, v
    a = np.where(red == most, green - blue, np.where(green == most, 2 * d + blue - red, 4 * d + red - green))
    unit = d << 14
    made = []
    for n in (5, 3, 1):
        k = (n * unit + (a << 14) + 6 * d * turn) % np.maximum(6 * unit, 1)
        t = np.clip(np.minimum(k, 4 * unit - k), 0, unit)
        made.append(most - ((t + 2**13) >> 14))
    return np.where(d == 0, v, np.stack(made))


def jitter(v, draws, brightness, contrast, saturation, **more):
    strengths = [brightness, contrast, saturation, more["hue"]]
    left, o = [0, 1, 2, 3], draws.r(32, 24)
    for k in (4, 3, 2, 1):
        which = left.pop(o % k)
        o //= k
        strength, = strengths[which]
        if strength == 0:
            continue
        m = whole(strength * F(2**14 if which == 3 else 2**16))
        factor = 2**16 - m + draws.r(33 + which, 2 * m + 1)
        if which == 0:
            v = blend(v, factor, 0)
        elif which == 1:
            of = grey(v) if len(v) == 3 else v
            v = blend(v, factor, (2 * int(of.sum()) + of.size) // (2 * of.size))
        elif which == 2:
            v = blend(v, factor, grey(v))
        else:
            v = hue(v, draws.r(36, 2 * m + 1) - m)
    return v


def rotate(v, draws, degrees, bilinear, fill):
    _, high, wide = v.shape
    m = whole(degrees / F(180) * F(2**20))
    b = draws.r(40, 2 * m + 1) - m
    t = F(abs(b)) / F(2**20)
    c, s = whole(F(2**16) * cospi(t)), whole(F(2**16) * cospi(abs(F(0.5) - t))) * (-1 if b < 0 else 1)
    dx = 2 * np.arange(wide, dtype=np.int64) + 1 - wide
    dy = (2 * np.arange(high, dtype=np.int64) + 1 - high)[:, None]
    x, y = c * dx - s * dy + 2**16 * wide, s * dx + c * dy + 2**16 * high
    inside = (x >= 0) & (x < wide << 17) & (y >= 0) & (y < high << 17)
    if bilinear:
        taps = [(np.clip(p >> 17, 0, n - 1), np.clip((p >> 17) + 1, 0, n - 1), p % 2**17 >> 9)
                for p, n in ((y - 2**16, high), (x - 2**16, wide))]
        read = four(v, *taps)
    else:
        read = v[:, np.clip(y >> 17, 0, high - 1), np.clip(x >> 17, 0, wide - 1)]
    return np.where(inside, read, int(fill))


def blur(v, draws, size, sigma):
    reach, s = int(size) // 2, draws.between(41, *sigma)
    q = [F(i) / s for i in range(1, reach + 1)]
    g = [exp(F(-0.5) * (x * x)) for x in q]
    total = ONE
    for x in g:
        total = total + F(2) * x
    weights = [whole(x / total * F(2**16)) for x in g]
    weights = weights[::-1] + [2**16 - 2 * sum(weights)] + weights
    for axis, half, shift in ((2, 2**7, 8), (1, 2**23, 24)):
        n = v.shape[axis]
        at = np.arange(n)[:, None] + np.arange(-reach, reach + 1)
        at = np.where(at < 0, -at, np.where(at >= n, 2 * (n - 1) - at, at))
        taps = np.moveaxis(np.take(v, at, axis), axis + 1, -1)  # [channel][row][column][tap]
        v = ((taps * np.array(weights)).sum(-1) + half) >> shift
    return v


def act_on_mask(name, said, mask, words):
    """24.22: of `resizedcrop` and `rotate`."""
    values, draws, (high, wide) = {**PARAMETERS[name], **said}, Draws(words), mask.shape
    if name == "rotate":
        return rotate(mask[None].astype(np.int64), draws, values[""][0], False, 255)[0].astype(np.uint8)
    top, left, h, w = window(draws, values["scale"], values["ratio"], high, wide)
    rows, columns = ((np.arange(many) * 2 + 1) * few // (2 * many) for many, few in ((high, h), (wide, w)))
    return mask[np.ix_(top + rows, left + columns)]


def act(name, said, v, words):
    """A picture of bytes in the place of another; `words` are those that the item draws."""
    values = {**PARAMETERS[name], **said}
    v, draws = v.astype(np.int64), Draws(words)
    if name == "resizedcrop":
        made = resizedcrop(v, draws, **values)
    elif name == "jitter":
        made = jitter(v, draws, **values)
    elif name == "rotate":
        made = rotate(v, draws, values[""][0], "bilinear" in said, values["fill"][0])
    else:
        made = blur(v, draws, values[""][0], values["sigma"])
    return made.astype(np.uint8)
