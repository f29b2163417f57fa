"""Sections 2.6, 2.7 and 23.13 of the contract: from the columns of a table to the inputs of a network.

`kinds` has for each column its categories, the `Parts` of its dates, or None for a column of numbers.
"""

from fractions import Fraction

import numpy as np

import dates
from binary32 import ONE, ZERO, nearest


def kinds_of(names, features):
    """The kinds that the table of 11.6 tells; without one all columns hold numbers. One of texts has no categories: its
    inputs come after all others."""
    columns = names["features"] if names else [None] * features
    return [c.get("categories", c.get("dates", [] if "text" in c else None)) if isinstance(c, dict) else None for c in columns]


def widths_of(kind):
    """How many inputs the column has, in runs that are scaled together; a run of one is a number."""
    if isinstance(kind, dates.Parts):
        return kind.widths()
    return [1] if kind is None else [len(kind)]


def complete(table):
    """2.6: the indices of the items that lack nothing."""
    return np.flatnonzero(~np.isnan(table.astype(np.float32)).any(axis=1))


def middle(values, weights):
    """The weighted median of fractions; all weights are above 0."""
    together, before = sum(weights), 0
    pairs = sorted(zip(values, weights))
    for at, (value, weight) in enumerate(pairs):
        before += weight
        if 2 * before == together:
            return (value + pairs[at + 1][0]) / 2
        if 2 * before > together:
            return value


def fill_of(table, kinds, rule, weights=None):
    """2.6: what stands for missing numbers, fitted to the training items."""
    fill = np.zeros(len(kinds), dtype=np.float32)
    weights = np.ones(len(table)) if weights is None else weights
    for k, kind in enumerate(kinds):
        if rule not in ("mean", "median") or not (kind is None or isinstance(kind, dates.Parts)):
            continue
        there = ~np.isnan(table[:, k].astype(np.float32)) & (weights > 0)
        values = [Fraction(float(v)) for v in table[there, k]]
        own = [Fraction(float(w)) for w in weights[there]]
        if values:
            exact = (sum(w * v for w, v in zip(own, values)) / sum(own) if rule == "mean"
                     else middle(values, own))
            fill[k] = nearest(exact) + ZERO  # adding +0 makes +0 of -0
    return fill


def inputs_of(table, kinds, fill, moments):
    """2.7, 23.13: the inputs before scaling, in the type of the table. `moments`: of the columns of dates, by
    their numbers."""
    columns = []
    for k, categories in enumerate(kinds):
        column = table[:, k]
        if isinstance(categories, dates.Parts):
            columns += dates.inputs(moments[k], categories, fill[k])
        elif categories is None:
            columns.append(np.where(np.isnan(column), fill[k], column) if table.dtype != np.uint8
                           else column)
        else:
            columns += [(column == c).astype(table.dtype) for c in range(len(categories))]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.float32)


def unscaled_categories(stats, kinds):
    """5.2, 23.13: mean 0, deviation and inverse 1 for the inputs of categories and of single values of dates."""
    at = 0
    for kind in kinds:
        for width in widths_of(kind):
            if kind is not None and (width > 1 or not isinstance(kind, dates.Parts)):
                for array, value in zip(stats, (ZERO, ONE, ONE)):
                    array[at : at + width] = value
            at += width
    return stats
