"""Section 3 of the contract: random words."""

import numpy as np

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)

# Purposes of 3.2.
WEIGHTS, ORDER, DROPOUT, SPLIT, NEW_LAST = 1, 2, 3, 4, 11


def philox4x32(counter, key):
    """3.1: ten rounds over four arrays of counter words and two integers of key.

    The words are held in uint64, so that a product of two of them fits; every word is less
    than 2^32 at the end of each round.
    """
    c0, c1, c2, c3 = (np.asarray(c, dtype=np.uint64) for c in counter)
    k0, k1 = key
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> HALF) ^ c1 ^ np.uint64(k0),
            p1 & MASK,
            (p0 >> HALF) ^ c3 ^ np.uint64(k1),
            p0 & MASK,
        )
        k0 = (k0 + 0x9E3779B9) % 2**32
        k1 = (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def word(seed, purpose, layer, epoch, item, element):
    """3.2: words for integers or arrays of items and elements, broadcast against each other."""
    item, element = np.broadcast_arrays(
        np.asarray(item, dtype=np.uint64), np.asarray(element, dtype=np.uint64)
    )
    counter = (
        element // np.uint64(4) + np.uint64(layer // 256 * 2**30),
        item & MASK,
        np.full(item.shape, epoch, dtype=np.uint64),
        np.uint64(purpose * 2**24 + layer % 256 * 2**16) + (item >> HALF),
    )
    words = philox4x32(counter, (seed % 2**32, seed // 2**32))
    return np.choose((element % np.uint64(4)).astype(np.int64), words)
