"""Weights of items and classes for the estimators."""

import numpy as np

from . import _arrays
from .errors import InputError

# Up to so many items a whole weight repeats its item, and equal items are put in order.
REPEATED = 1000


def of_items(given, items):
    """Weights as float64, or None. Each is finite and not negative, and one is above 0."""
    if given is None:
        return None
    weights = _arrays.array_of(given, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(items, weights)
    if weights.shape != (items,):
        raise InputError(f"there are {items} items, and weights of the shape {weights.shape}",
                         "sample_weight", "give one weight for each item")
    with np.errstate(over="ignore"):
        weights = weights.astype(np.float64)
        small = weights.astype(np.float32)
    if not (np.isfinite(small) & (weights >= 0)).all():
        raise InputError("a weight is negative or not a finite number", "sample_weight")
    if not small.any():
        raise InputError("the weights are all zero", "sample_weight",
                         "give at least one item a weight above 0")
    return weights


def present(table, labels, weights):
    """Table, labels and weights without the items of weight 0."""
    if weights is None or weights.astype(np.float32).all():
        return table, labels, weights
    there = weights.astype(np.float32) > 0
    return _items(table, there), labels[there], weights[there]


def _items(table, chosen):
    """The table of these items, by their places or by whether each is there."""
    exact = table.exact and {k: column[chosen] for k, column in table.exact.items()}
    return table._replace(values=table.values[chosen], exact=exact)


def of_classes(given, classes):
    """The option `class_weight` for classes that are numbered, or None."""
    if given is None or isinstance(given, str) and given == "balanced":
        return given
    if not hasattr(given, "items"):
        raise ValueError(f'class_weight is "balanced", a dict or None, and not {given!r}')
    known = {key: k for k, key in enumerate(classes.tolist())}
    strange = [key for key in given if key not in known]
    if strange and len(given) - len(strange) < len(known):
        raise ValueError(f"class_weight names the classes {strange}, which are not in y")
    return ",".join(f"{known[key]}={float(weight)!r}" for key, weight in given.items()
                    if key in known)


def settled(table, labels, weights):
    """Table, labels and weights by which equal weighted items give equal bytes.

    A whole weight says that its item is there so many times, and in small tables it is put there so
    many times. Batches depend on the order of the items. Where items are equal it becomes that of
    their bytes, so that it does not matter how often, with which weights and in which places an item
    was written. The weights that are left are float32, for the library.
    """
    if weights is not None:
        if (weights == np.floor(weights)).all() and weights.sum() <= REPEATED:
            counts = weights.astype(np.int64)
            table, labels, weights = _items(table, np.arange(len(counts)).repeat(counts)), labels.repeat(counts), None
        elif (weights == weights[0]).all():
            weights = None
    if weights is not None:
        weights = weights.astype(np.float32)
    elif len(table.values) <= REPEATED:
        order = in_order(table, labels)
        table, labels = (table, labels) if order is None else (_items(table, order), labels[order])
    return table._replace(values=np.ascontiguousarray(table.values)), labels, weights


def _all_differ(values, labels):
    """Whether hash values show that all items differ. False: they may be equal."""
    columns = values.shape[1] + 1
    factors = np.arange(1, 2 * columns, 2, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = np.empty((len(values), columns), np.uint64)
    bits[:, :-1] = values.view(np.uint32)
    bits[:, -1] = labels.view(np.uint32)
    return len(np.unique(bits @ factors)) == len(values)


def _cut(array):
    """The bytes of each item."""
    content, size = array.tobytes(), array.nbytes // len(array)
    return [content[at:at + size] for at in range(0, len(content), size)]


def in_order(table, labels):
    """The places of the items by their bytes, or None where all items differ."""
    if _all_differ(table.values, labels):
        return None
    values, labels = table.values.astype(">f4"), labels.astype(labels.dtype.newbyteorder(">"))
    exact = [column.astype(column.dtype.newbyteorder(">")) for column in (table.exact or {}).values()]
    keys = [b"".join(parts) for parts in zip(*map(_cut, (values, labels, *exact)))]
    if len(set(keys)) == len(keys):
        return None
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))
