"""24.57, 24.58: mixup and cutmix."""

import numpy as np

import elementary
from binary32 import F, ONE
from philox import word

PURPOSE, LAYER = 6, 1


def share(alpha, seed, epoch, item):
    """L of an item."""
    words = word(seed, PURPOSE, LAYER, epoch, item, np.arange(64))
    logs = elementary.log((2 * (words >> 9) + 1).astype(np.float32) / F(2**24)) / alpha
    for a, b in logs.reshape(32, 2):
        pair = np.array([a, b], np.float32)
        mean = F(0.5) if a == b else elementary.sigmoid(pair[:1] - pair[1:])[0]
        x, y = elementary.exp(pair)
        if x + y <= ONE:
            break
    return int(np.rint(mean * F(2**16)))


def box(size, part, seed, epoch, item):
    """The first and the end of the rows, and of the columns."""
    root = np.sqrt(F(2**16 - part) / F(2**16))
    for d in range(2):
        side = int(np.rint(F(size[d]) * root))
        first = int(word(seed, PURPOSE, LAYER, epoch, item, np.array([64 + d]))[0]) * size[d] // 2**32 - side // 2
        yield max(first, 0), min(first + side, size[d])


class Mix:
    """How the items of a training are mixed: `options` have mixup, cutmix, shape and seed."""

    def __init__(self, options):
        self.alpha, self.cut = options.mixup or options.cutmix, options.cutmix > 0
        self.shape, self.seed = options.shape, options.seed

    def shares(self, epoch, items):
        """(lambda, mu, boxes) of items; boxes are None for mixup."""
        own, boxes = [], []
        for item in map(int, items):
            part = share(self.alpha, self.seed, epoch, item)
            if self.cut:
                _, high, wide = self.shape
                rows, columns = box((high, wide), part, self.seed, epoch, item)
                area = (rows[1] - rows[0]) * (columns[1] - columns[0])
                part = 2**16 - (2**17 * area + high * wide) // (2 * high * wide)
                boxes.append((slice(*rows), slice(*columns)))
            own.append(part)
        own = np.array(own, np.int64)
        return own.astype(np.float32) / F(2**16), (2**16 - own).astype(np.float32) / F(2**16), boxes or None

    def values(self, own, other, epoch, items):
        """Tables of values: of the items, as they were augmented, and of their partners."""
        first, second, boxes = self.shares(epoch, items)
        if boxes is not None:
            made = own.copy().reshape(-1, *self.shape)
            for i, (rows, columns) in enumerate(boxes):
                made[i, :, rows, columns] = other[i].reshape(self.shape)[:, rows, columns]
            return made.reshape(own.shape)
        if own.dtype == np.uint8:
            part = (first * F(2**16)).astype(np.int64)[:, None]
            return ((part * own + (2**16 - part) * other + 2**15) >> 16).astype(np.uint8)
        return first[:, None] * own + second[:, None] * other


    def masks(self, own, other, epoch, items):
        """24.23: the classes of the items, as they were moved, with the boxes of their partners."""
        made = own.copy()
        for i, (rows, columns) in enumerate(self.shares(epoch, items)[2]):
            made[i, rows, columns] = other[i, rows, columns]
        return made


def partners(positions, n):
    return (np.asarray(positions) - 1) % n
