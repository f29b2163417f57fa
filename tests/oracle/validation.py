"""Sections 2.7, 2.8 and 11.7 of the contract: a validation file as the model has it."""

from fractions import Fraction

import numpy as np

import columns
import data
import tables
from binary32 import to_text


def value_of(text):
    """2.7: the value of a text as a number, or None."""
    raw = text.encode()
    if tables.kind(raw) != "number":
        return None
    if Fraction(text).denominator == 1:
        return Fraction(text) if abs(Fraction(text)) < 2**31 else None
    return Fraction(float(tables.number_of(raw)))


def index_of(text, categories):
    """The category that a text means, or None."""
    if text in categories:
        return categories.index(text)
    values = [value_of(category) for category in categories]
    if None in values or value_of(text) is None:
        return None
    same = [k for k, value in enumerate(values) if value == value_of(text)]
    return same[0] if len(same) == 1 else None


def parts(feature):
    """Name and categories of a feature of 11.6."""
    return (feature["name"], feature.get("categories")) if isinstance(feature, dict) else (feature, None)


def known_categories(names):
    """2.1.4: names and places of the categories of a model."""
    features = [parts(feature) for feature in names["features"]] if names else []
    return ({name for name, categories in features if categories} - {None},
            {k for k, (_, categories) in enumerate(features) if categories})


def names_of(names):
    """Of the features of a model."""
    return [parts(feature)[0] for feature in names["features"]] if names else []


def as_model(table, labels, own, names):
    """The columns and labels of a file in the order and with the numbers of the model; and the
    digest of 2.8; and the items that lack nothing, the exact values of wide columns of the model, and its moments. `own` and `names` are the tables of 11.6, or None."""
    if not names or not own:
        return table, labels, data.digest(table, labels), np.arange(len(table)), {}, {}
    wanted = [parts(feature) for feature in names["features"]]
    has = [parts(feature) for feature in own["features"]]
    if any(name for name, _ in wanted) and any(name for name, _ in has):
        places = [[name for name, _ in has].index(name) for name, _ in wanted]
    else:
        places = list(range(len(wanted)))
    table = table[:, places]
    whole = columns.complete(table)  # 2.7: a category that the model does not list is not missing
    if any(isinstance(feature, dict) and "exact" not in feature for feature in names["features"]):
        table = table.astype(np.float32)
    for k, (place, (_, categories)) in enumerate(zip(places, wanted)):
        texts = has[place][1]
        for i in range(len(table)) if categories else ():
            value = table[i, k]
            if not np.isnan(value):
                found = index_of(texts[int(value)] if texts else to_text(value), categories)
                table[i, k] = np.nan if found is None else found
    if own["target"] != "real":
        classes = own["classes"] or [str(k) for k in range(int(labels.max()) + 1)]
        number = names["classes"].index if names["classes"] else int
        labels = np.array([number(classes[label]) for label in labels], np.uint32)
    exact = {k: own["exact"][place] for k, place in enumerate(places)
             if k in names["exact"] and place in own["exact"]}
    moments, times = ({k: own[key][place] for k, place in enumerate(places)
                       if k in names["moments"] and place in own[key]} for key in ("moments", "times"))
    for k in names["moments"]:  # a column whose values are all missing may stand for one of dates
        moments.setdefault(k, [None] * len(table))
    return table, labels, data.digest(table, labels, exact=exact, times=times), whole, exact, moments
