"""Evaluation: how well predictions agree with labels."""

import ctypes as C

from . import _abi
from ._library import call, library, new, said
from .errors import UsageError

_MEANS = ("accuracy", "top5_accuracy", "precision", "recall", "f1", "weighted_precision",
          "weighted_recall", "weighted_f1", "auc", "log_loss", "calibration_error")
_ERRORS = ("mae", "rmse", "r2")
_OF_LABELS = ("accuracy", "exact_match", "micro_precision", "micro_recall", "micro_f1", "precision",
              "recall", "f1")
_OF_NEXT = ("accuracy", "loss", "perplexity", "bits_per_byte")
_OF_MASKS = ("accuracy", "mean_iou", "precision", "recall", "f1")


def evaluate(labels, predictions, *, weights=None, probabilities=None):
    """Compares predictions with labels.

    Every number follows from exact sums and is rounded once: it does not depend on the order of the
    items. <quern/evaluate.h> and docs/exactness.md, section 19, define them.

    Parameters
    ----------
    labels : array_like
        Of each item: its class, a number from 0, or for real labels the number.
    predictions : array_like
        Of classes the outputs of the network, items x classes; of two classes the output for class
        1 alone will do. Of real labels the predicted numbers, one for each item.
    weights : array_like, optional
        The weight of each item.
    probabilities : bool, optional
        Whether outputs are probabilities, which the log loss and the calibration need. Default: when
        all are from 0 to 1.

    Returns
    -------
    dict
        Numbers by name. Of classes also ``by_class``, a dict of lists, and ``calibration``, the same
        for the bins of the confidence. Numbers that are not defined are NaN.
    """
    import numpy as np

    labels = np.asarray(labels)
    given = np.asarray(predictions)
    if labels.ndim != 1 or given.ndim not in (1, 2) or len(given) != len(labels):
        raise UsageError("predictions do not have a row for each label",
                         f"labels {labels.shape}, predictions {given.shape}",
                         "give as many predictions as labels")
    values = np.ascontiguousarray(given, np.float32)
    real = labels.dtype.kind == "f"
    if real and given.ndim == 2 and given.shape[1] != 1:
        raise UsageError("labels are real numbers, predictions are those of classes", "",
                         "give classes as whole numbers")
    kept = [values]
    form = _abi.qn_evaluation_input()
    form.size, form.items = C.sizeof(form), len(labels)
    if real:
        kept.append(np.ascontiguousarray(labels, np.float32))
        form.targets, form.predictions = _floats(kept[-1]), _floats(values)
    else:
        form.outputs = 1 if values.ndim == 1 else values.shape[1]
        form.classes = max(form.outputs, 2)
        kept.append(np.ascontiguousarray(labels, np.int32))
        form.labels = C.cast(kept[-1].ctypes.data, C.POINTER(C.c_int32))
        form.output = _floats(values)
        if probabilities is None:
            there = values[~np.isnan(values)]
            probabilities = bool(((there >= 0) & (there <= 1)).all())
        form.probabilities = int(probabilities)
    if weights is not None:
        kept.append(np.ascontiguousarray(weights, np.float32))
        if kept[-1].shape != labels.shape:
            raise UsageError("weights do not have a number for each label", "",
                             "give as many weights as labels")
        form.weights = _floats(kept[-1])
    return _made("qn_evaluation_make", form)


def _made(name, *arguments):
    """The dict of an evaluation that a function of the library makes."""
    made = C.POINTER(_abi.qn_evaluation)()
    call(name, *arguments, C.byref(made))
    try:
        return read(made.contents)
    finally:
        library().qn_evaluation_free(made)


def of_predictions(model, data, choice, flips=False, parts=None):
    """The dict of what a model predicts for labelled data. With `parts` each rank predicts its own, `data`,
    and the dict is that of the whole."""
    outputs = library().qn_model_predicts(model) != _abi.QN_PREDICTS_NEXT  # it needs none
    make = "qn_predictions_make_flipped" if flips else "qn_predictions_make"
    if parts:
        from .parts import together

        made = together(lambda: new(make, model, data, choice, outputs))
    else:
        made = new(make, model, data, choice, outputs)
    try:
        if parts:
            call("qn_predictions_join", made, parts, 1)
        return _made("qn_predictions_evaluate", made)
    finally:
        library().qn_predictions_free(made)


def _floats(array):
    return C.cast(array.ctypes.data, C.POINTER(C.c_float))


def read(e):
    """The dict of an evaluation of the library."""
    if e.clusters:
        return {"items": e.items, "clusters": e.clusters, "inertia": e.inertia}
    if e.real:
        return {"items": e.items, "weighted": bool(e.weighted), **{n: getattr(e, n) for n in _ERRORS}}
    if e.next:
        return {"items": e.items, "tokens": e.targets, "correct": e.correct, "bytes": e.bytes,
                **{name: getattr(e, name) for name in _OF_NEXT}}
    classes = [e.by_class[c].contents for c in range(e.classes)]
    if e.answers:
        of_each = ("items", "predicted", "correct", "precision", "recall", "f1")
        return {"items": e.items, "targets": e.targets, "correct": e.correct,
                **{name: getattr(e, name) for name in (_OF_MASKS if e.mask else _OF_LABELS)},
                "by_class" if e.mask else "by_label": {
                    "name": [said(c.name) for c in classes],
                    **_columns(classes, (*of_each, "iou") if e.mask else of_each)}}
    bins = [e.bin[b].contents for b in range(e.bins)]
    return {"items": e.items, "correct": e.correct, "weighted": bool(e.weighted),
            **{name: getattr(e, name) for name in _MEANS},
            "by_class": {"name": [said(c.name) for c in classes],
                         **_columns(classes, ("items", "predicted", "correct", "precision", "recall",
                                              "f1", "auc"))},
            "calibration": _columns(bins, ("low", "high", "items", "confidence", "accuracy"))}


def _columns(rows, names):
    return {name: [getattr(row, name) for row in rows] for name in names}
