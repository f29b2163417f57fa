"""Sections 20.7 and 20.8 of the contract: files of models by sums, and what they give."""

import math

import numpy as np

import linear
import structure
from model_file import names_text, quoted, table_text

USUAL = {"kmeans": {"clusters": 8, "iterations": 300, "tolerance": 0.0001, "seed": 1, "starts": 1},
         "pca": {"components": 0},
         "ridge": {"alpha": 1.0, "intercept": 1},
         "lasso": {"alpha": 1.0, "intercept": 1, "tolerance": 0.0001, "iterations": 1000}}


def number_text(number):
    """1.6 for binary64."""
    if isinstance(number, int):
        return str(number)
    return next(text for text in (f"{number:.{digits}g}" for digits in range(1, 18)) if float(text) == number)


def fit(kind, items, labels, given):
    """The parameters and the tensors; items are lists of floats."""
    p = {**USUAL[kind], **given}
    columns = [list(column) for column in zip(*items)]
    if kind == "kmeans":
        found = min((structure.kmeans(items, p["clusters"], p["seed"] + s, p["tolerance"], p["iterations"])
                     for s in range(p["starts"])), key=lambda one: one[2])
        return p, [("centres", found[0])]
    if kind == "pca":
        p["components"] = p["components"] or min(len(items), len(columns))
        variances, rows = structure.components([np.array(c) for c in columns])
        mean, _ = linear.means_and_covariances(columns)
        return p, [("components", rows[:p["components"]]), ("mean", mean), ("variance", variances)]
    if kind == "ridge":
        w, b = linear.ridge([*columns, labels], p["alpha"], bool(p["intercept"]))
    else:
        w, b = linear.lasso([*columns, labels], p["alpha"], p["tolerance"], p["iterations"], bool(p["intercept"]))[:2]
    return p, [("coefficients", w), ("intercept", [b])]


def file_bytes(kind, parameters, tensors, data, items, table):
    """20.7: the file; `table` as of 11.6, or None."""
    text = " ".join(f"{name}={number_text(number)}" for name, number in parameters.items())
    features = len(table["features"])
    recipe = (f'{{"contract":7,"kind":"{kind}","parameters":"{text}","data":"{data}","items":{items},'
              f'"features":{features},"rules":{names_text("")},"table":{table_text(table)}}}')
    header, begin, body = f'{{"__metadata__":{{"format":"quern-{kind}-1","recipe":{quoted(recipe)}}}', 0, b""
    for name, numbers in tensors:
        array = np.array(numbers, "<f8")
        shape = ",".join(map(str, array.shape))
        header += f',"{name}":{{"dtype":"F64","shape":[{shape}],"data_offsets":[{begin},{begin + array.nbytes}]}}'
        begin, body = begin + array.nbytes, body + array.tobytes()
    header = (header + "}").encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + body


def predict(kind, tensors, items):
    """20.8: for each item prediction, score and outputs, float32; None where there is none."""
    t, found = dict(tensors), []
    for item in items:
        if kind == "kmeans":
            squares = [structure.square(item, centre) for centre in t["centres"]]
            best = squares.index(min(squares))
            roots = [np.float32(math.sqrt(square)) for square in squares]
            found.append((best, roots[best], roots))
        elif kind == "pca":
            outputs = []
            for axis in t["components"]:
                y = 0.0
                for x, m, v in zip(item, t["mean"], axis):
                    y = y + (float(x) - float(m)) * float(v)
                outputs.append(np.float32(y))
            found.append((None, None, outputs))
        else:
            y = float(t["intercept"][0])
            for x, w in zip(item, t["coefficients"]):
                y = y + float(x) * float(w)
            found.append((np.float32(y), None, None))
    return found
