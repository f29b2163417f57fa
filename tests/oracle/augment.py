"""Sections 17.10 and 24.52 of the contract: augmentation, one item after the other and word after word."""

import numpy as np

import augment_words
from binary32 import to_text
from philox import word

AUGMENT = 6  # the purpose of 17.10


def parse(text):
    """The words as (name, number or None, or the parameters of 24.52)."""
    parts = [part.split() for part in text.lower().split(";") if part.strip()]
    return [(part[0], augment_words.parse(part[0], part[1:]) if part[0] in augment_words.PARAMETERS
             else int(part[1]) if part[1:] else None) for part in parts]


def word_text(name, number):
    if isinstance(number, dict):
        numbers = {key: " ".join([key, *map(to_text, values)]).strip() for key, values in number.items()}
        return " ".join([name, *numbers.values()])
    return name if number is None else f"{name} {number}"


def canonical(text):
    return "; ".join(word_text(name, number) for name, number in parse(text))


def is_eighth(text):
    """24.1: whether it has a word of 24.52."""
    return any(name in augment_words.PARAMETERS for name, _ in parse(text))


def zeros_around(picture, pixels):
    channels, height, width = picture.shape
    larger = np.zeros((channels, height + 2 * pixels, width + 2 * pixels), picture.dtype)
    larger[:, pixels:pixels + height, pixels:pixels + width] = picture
    return larger


def of_item(words, picture, seed, epoch, item):
    """A picture (C, H, W) in the place of another."""
    _, high, wide = picture.shape
    drawn = [int(w) for w in word(seed, AUGMENT, 0, epoch, item, np.arange(44))]
    for name, number in words:
        rows, columns = picture.shape[1:]

        def r(j, m):
            return drawn[j] * m // 2**32

        if name == "pad":
            picture = zeros_around(picture, number)
        elif name == "crop":
            top, left = r(0, rows - high + 1), r(1, columns - wide + 1)
            picture = picture[:, top:top + high, left:left + wide]
        elif name == "flip":
            picture = picture[:, :, ::-1] if r(2, 2) == 1 else picture
        elif name == "cutout":
            y, x = r(4, rows) - number // 2, r(5, columns) - number // 2
            picture = picture.copy()
            picture[:, max(y, 0):max(y + number, 0), max(x, 0):max(x + number, 0)] = 0
        elif name in augment_words.PARAMETERS:
            picture = augment_words.act(name, number, picture, drawn)
        else:
            raise SystemExit(f"oracle: {name} does not augment")
    return picture


# 24.22: a square of zeros, and words that change colours, leave masks as they are
STILL = ("cutout", "jitter", "blur")


def of_mask(words, mask, seed, epoch, item):
    """The classes (H, W) in the place of others."""
    high, wide = mask.shape
    drawn = [int(w) for w in word(seed, AUGMENT, 0, epoch, item, np.arange(44))]
    for name, number in words:
        rows, columns = mask.shape
        if name in STILL:
            continue
        if name == "pad":
            mask = np.pad(mask, number, constant_values=255)
        elif name == "crop":
            top, left = drawn[0] * (rows - high + 1) >> 32, drawn[1] * (columns - wide + 1) >> 32
            mask = mask[top:top + high, left:left + wide]
        elif name == "flip":
            mask = mask[:, ::-1] if drawn[2] >> 31 else mask
        else:
            mask = augment_words.act_on_mask(name, number, mask, drawn)
    return mask


def masks(text, table, seed, epoch, items):
    """The classes (items, H, W) that stand for those of the items of the table."""
    words = parse(text)
    return np.stack([of_mask(words, table[i], seed, epoch, int(i)) for i in items])


def values(text, table, shape, seed, epoch, items):
    """The values (items, F) that stand for those of the items of the table."""
    words = parse(text)
    return np.stack([of_item(words, table[i].reshape(shape), seed, epoch, int(i)).reshape(-1)
                     for i in items])
