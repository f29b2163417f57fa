"""Records of runs: the runs in a file, and pages about them."""

import ctypes as C
import math

from . import _abi
from ._library import call, library, new, said, sized, text
from .data import Data
from ._options import fill_compute

_TEXTS = ("id", "name", "state", "started", "ended", "host", "command", "data", "model", "scored")
_NUMBERS = ("seconds", "accuracy", "loss", "rmse", "r2")


def runs(path):
    """The runs in a file that ``train(runs=path)`` or ``quern train --runs`` wrote, the oldest first.

    Returns
    -------
    list of dict
        ``id``, ``name``, ``state``, ``started``, ``ended``, ``host``, ``command``, ``data`` and ``model``
        (digests), ``scored`` (the set of the scores), ``epochs``, ``seconds``, ``accuracy``, ``loss``,
        ``rmse``, ``r2``, and ``recipe``, a dict of texts. None where a value is not known.
    """
    made = new("qn_runs_open", text(path))
    try:
        return [_run(made, index) for index in range(library().qn_runs_count(made))]
    finally:
        library().qn_runs_close(made)


def _run(made, index):
    info = sized(_abi.qn_run_info)
    call("qn_runs_get", made, index, info)
    row = {name: said(getattr(info, name)) or None for name in _TEXTS}
    row["epochs"] = info.epochs
    for name in _NUMBERS:
        value = getattr(info, name)
        row[name] = None if math.isnan(value) else value
    row["recipe"], n = {}, 0
    while (key := library().qn_runs_key(made, index, n)) is not None:
        row["recipe"][said(key)] = said(library().qn_runs_value(made, index, n))
        n += 1
    return row


def report(run, path=None, *, plots=None, model=None, data=None, trace=None, mistakes=24, importance=0, seed=1,
           **compute):
    """Writes a page about a run, or a comparison of several.

    Parameters
    ----------
    run : str, or list of str
        Folders of records (``train(run_dir=...)``), or ``"FILE:RUN"`` of a run in a file of runs.
    path : str, optional
        The page: one HTML file.
    plots : str, optional
        A folder for the charts as SVG files.
    model : Model, optional
        That of the run: adds the weights of one without hidden layers.
    data : Data, optional
        Items with labels, as ``open`` makes them: adds precision and recall by class, and the worst
        mistakes.
    trace : str, optional
        The trace of the run: adds when each worker computed.
    mistakes : int
        How many of these are shown.
    importance : int
        How often each column is shuffled to see what the predictions lose; 0: never.
    seed : int
        Of the shuffles.
    **compute
        Devices, as for ``train``.

    Raises
    ------
    QuernError
        What the library says, as the subclass that fits.
    """
    if data is not None and not isinstance(data, Data):
        raise TypeError("data is what quern.open returns")
    if path is None and plots is None:
        raise TypeError("a report needs a path, or a folder for its plots")
    named = [run] if isinstance(run, (str, bytes)) or hasattr(run, "__fspath__") else list(run)
    options, own = _abi.qn_report_options(), _abi.qn_compute()
    library().qn_report_options_init(options)
    kept = fill_compute(own, compute)
    array = (C.c_char_p * len(named))(*map(text, named))
    options.run, options.runs = C.cast(array, C.POINTER(C.c_char_p)), len(named)
    options.path, options.plots, options.trace = text(path), text(plots), text(trace)
    options.model = None if model is None else model._address
    options.data = None if data is None else data._address
    options.compute = C.pointer(own)
    options.mistakes, options.importance, options.seed = mistakes, importance, seed
    call("qn_report_write", options)
    del kept
