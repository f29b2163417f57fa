"""Sections 2.6 and 2.7 of the contract: from the columns of a table to the inputs of a network.

`kinds` has for each column its categories, or None for a column of numbers.
"""

from fractions import Fraction

import numpy as np

from binary32 import ONE, ZERO, nearest


def kinds_of(names, features):
    """The kinds that the table of 11.6 tells; without one all columns hold numbers."""
    columns = names["features"] if names else [None] * features
    return [c["categories"] if isinstance(c, dict) else None for c in columns]


def complete(table):
    """2.6: the indices of the items that lack nothing."""
    return np.flatnonzero(~np.isnan(table.astype(np.float32)).any(axis=1))


def middle(values):
    """The median of fractions."""
    values, half = sorted(values), len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def fill_of(table, kinds, rule):
    """2.6: what stands for missing numbers, fitted to the training items."""
    fill = np.zeros(len(kinds), dtype=np.float32)
    for k, categories in enumerate(kinds):
        values = [Fraction(float(v)) for v in table[:, k] if not np.isnan(v)]
        if rule in ("mean", "median") and categories is None and values:
            exact = sum(values) / len(values) if rule == "mean" else middle(values)
            fill[k] = nearest(exact) + ZERO  # adding +0 makes +0 of -0
    return fill


def inputs_of(table, kinds, fill):
    """2.7: the inputs before scaling, in the type of the table."""
    columns = []
    for k, categories in enumerate(kinds):
        column = table[:, k]
        if categories is None:
            columns.append(np.where(np.isnan(column), fill[k], column) if table.dtype != np.uint8
                           else column)
        else:
            columns += [(column == c).astype(table.dtype) for c in range(len(categories))]
    return np.stack(columns, axis=1)


def unscaled_categories(stats, kinds):
    """5.2: mean 0, deviation and inverse 1 for the inputs of categories."""
    at = 0
    for categories in kinds:
        width = 1 if categories is None else len(categories)
        if categories is not None:
            for array, value in zip(stats, (ZERO, ONE, ONE)):
                array[at : at + width] = value
        at += width
    return stats
