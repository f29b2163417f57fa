"""Sections 23.4 to 23.6 of the contract: wide columns of CSV files, which hold whole numbers.

The exact values of a column are a list of Python integers, with None for what is missing.
"""

from fractions import Fraction

import numpy as np

from binary32 import nearest
from data import block_digest


def whole_of(numbers):
    """23.4: the exact values of a column of numbers as they are written (None: missing), where it is
    wide; else None."""
    values = [None if number is None else Fraction(number) for number in numbers]
    there = [value for value in values if value is not None]
    if any(value.denominator != 1 or abs(value) >= 2**63 for value in there):
        return None
    if all(Fraction(float(nearest(value))) == value for value in there):
        return None
    return [None if value is None else int(value) for value in values]


def digest_end(exact, times):
    """23.5: what the digest ends with; `exact` has the values of the wide columns of numbers by their number,
    `times` those of dates (23.10)."""
    kinds = {**{k: (b"\1", exact[k]) for k in exact}, **{k: (b"\3", times[k]) for k in times}}
    text = len(kinds).to_bytes(8, "little")
    for k, (kind, column) in sorted(kinds.items()):
        values = [-2**63 if value is None else value for value in column]
        text += k.to_bytes(8, "little") + kind + block_digest(np.array(values, "<i8").tobytes())
    return text


def offset_of(values):
    """23.6: high and low of what is subtracted, fitted to the values of training items."""
    there = [value for value in values if value is not None]
    mean = float(Fraction(sum(there), len(there))) if there else 0.0  # a Fraction is rounded once
    whole = Fraction(round(mean))  # ties to even
    high = nearest(whole)
    return high, nearest(whole - Fraction(float(high)))


def differences(values, offset, zero):
    """23.6: the inputs of a column; `zero`: missing values are 0."""
    sum_ = Fraction(float(offset[0])) + Fraction(float(offset[1]))
    return np.array([np.nan if value is None and not zero else nearest(Fraction(value or 0) - sum_)
                     for value in values], np.float32)
