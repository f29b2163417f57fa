"""Section 4 of the contract: the order of items."""

import numpy as np

from philox import word


LENGTHS = 13  # the purpose of 25.89


def mix(v, k):
    """4.2, on arrays of uint32; NumPy's uint32 arithmetic is modulo 2^32."""
    h = v + np.uint32(k)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x7FEB352D)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x846CA68B)
    h ^= h >> np.uint32(16)
    return h


def permutation(seed, n, purpose, epoch):
    """4.3: the array P(0), ..., P(n-1).

    All positions walk at once; those that already stand below n rest.
    """
    b = max(2, (n - 1).bit_length())
    r = b // 2
    low_l = np.uint32(2 ** (b - r) - 1)
    low_r = np.uint32(2**r - 1)
    keys = word(seed, purpose, 0, epoch, 0, np.arange(8))

    x = np.arange(n, dtype=np.uint64)
    walking = np.ones(n, dtype=bool)
    while walking.any():
        left = (x[walking] >> np.uint64(r)).astype(np.uint32)
        right = x[walking].astype(np.uint32) & low_r
        for j in range(8):
            if j % 2 == 0:
                left ^= mix(right, keys[j]) & low_l
            else:
                right ^= mix(left, keys[j]) & low_r
        x[walking] = left.astype(np.uint64) * np.uint64(2**r) + right
        walking = x >= n
    return x.astype(np.int64)


def tokens_of_items(values, tokens):
    """25.89: the values of each item up to its last token."""
    return ((values < tokens) * np.arange(1, values.shape[1] + 1)).max(axis=1)


def by_length(seed, epoch, order, lengths, batch, batches):
    """25.89: the items of an epoch, whose drawn order is `order`, in windows of some batches."""
    items = []
    for first in range(0, len(order), batch * batches):
        window = order[first : first + batch * batches]
        window = window[np.argsort(lengths[window], kind="stable")]
        whole = len(window) // batch
        cut = [window[k * batch : (k + 1) * batch] for k in range(whole)]
        dealt = [None] * whole
        for k, to in enumerate(permutation(seed, whole, LENGTHS, epoch) if whole else []):
            dealt[to] = cut[k]
        items += [*dealt, window[whole * batch :]]
    return np.concatenate(items)


def grains(count, size):
    """4.4: the bounds (begin, end) of the grains of `count` consecutive positions.

    A size greater than `count` makes one grain, whatever it is, as the text asks."""
    return [(g, min(g + size, count)) for g in range(0, count, size)]
