"""Cross validation of several settings: `search`."""

import collections.abc
import ctypes as C
import itertools
import numbers
import queue
import threading
from typing import NamedTuple

from . import _abi, ranks
from ._library import assign, call, library, new, owned, said, sized, text
from ._options import FILE, _COMPUTE, _RECIPE, _fill, _set, _unknown, fill_compute
from ._progress import Line
from .data import data_of, shape_of, shape_text
from .errors import UsageError, of
from .training import _sizes, _start

# The metrics and their places in an array of numbers.
_NUMBER = {library().qn_search_metric_name(at).decode(): at for at in range(_abi.QN_SEARCH_METRICS)}
# Options of a training that a search has no use for.
_FILES = {"checkpoint", "checkpoint_every", "resume", "run_dir", "trace", "report", "plots", "runs",
          "run_name", "valid", "test", "output"}


class Run(NamedTuple):
    """A run of a search, when it is done: `setting` is a dict, `fold` counts from 0, `done` and
    `runs` are the runs that are done and those of the search, `rank` is the one that made it."""

    setting: dict
    fold: int
    done: int
    runs: int
    rank: int
    row: dict


class Search:
    """The results of a search.

    Attributes
    ----------
    rows : list of dict
        A row for each setting, the best first: its options, then for each metric (of `search`, by)
        the mean over the folds and, as ``accuracy_deviation`` and so on, the deviation. Numbers that
        are not defined, and those of a training that left the range of float32, are NaN.
    folds : list of dict
        A row for each run, in the order of the settings: its options, ``fold``, ``items``, the
        metrics, ``model`` (the digest, None where the training failed) and ``seconds``.
    best : dict
        The options of the best setting, for `train`.
    by : str
        What decided.
    """

    def __init__(self, rows, folds, best, by):
        self.rows, self.folds, self.best, self.by = rows, folds, best, by

    def columns(self):
        """The rows as a dict of lists, for a DataFrame."""
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}

    def __repr__(self):
        first = self.rows[0]
        return f"<quern.Search of {len(self.rows)} settings, {self.by} {first[self.by]:.4g} with {self.best}>"


def _settings(grid):
    """All combinations; the last name changes fastest."""
    if not isinstance(grid, collections.abc.Mapping) or not all(isinstance(word, str) for word in grid):
        raise UsageError(f"grid cannot be {grid!r}", "", 'write a dict of lists, such as grid={"lr": [0.01, 0.1]}')
    for word, values in grid.items():
        if word not in _RECIPE or word in _FILES:
            raise _unknown(word, sorted(set(_RECIPE) - _FILES))
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise UsageError(f"the grid needs a list of values for {word}, not {values!r}", "",
                             f'write grid={{"{word}": [...]}}')
    rows = [dict(zip(grid, values)) for values in itertools.product(*map(list, grid.values()))]
    if not rows:
        raise UsageError("the grid has a name without values", "", "give each at least one")
    return rows


def _describe(setting):
    """As the command writes it."""
    def word(value):
        value = str(value)
        return f'"{value}"' if any(c in value for c in " ,;") else value
    return " ".join(f"{name.replace('_', '-')} {word(value)}" for name, value in setting.items())


class _Running:
    """A search that runs on a thread of its own, so that Python hears Ctrl-C at once."""

    def __init__(self, o, data, settings, metrics, on_run, line):
        self.options, self.data, self.settings, self.on_run, self.line = o, data, settings, on_run, line
        self.metrics = metrics
        self.inbox, self.failure = queue.SimpleQueue(), None
        self.error, self.status = None, None
        if on_run or line:
            kinds = dict(_abi.qn_search_options._fields_)
            o.on_run = self.callback = kinds["on_run"](self._told)
        self.address = new("qn_search_open", o, data._address)
        self.release = owned(self, "qn_search_close", self.address)

    def _told(self, _, event):
        e = event.contents
        setting = self.settings[e.setting]
        row = {**setting, **self.row(e.fold, e.result.contents)}
        self.inbox.put(Run(setting, e.fold, e.done, e.runs, e.rank, row))

    def _work(self):
        self.error = _abi.qn_error()
        self.status = library().qn_search_run(self.address, self.error)
        self.inbox.put(None)

    def _hear(self, run):
        if self.line:
            said_of = f"run {run.done}/{run.runs}  fold {run.fold + 1}  {_describe(run.setting)}".rstrip()
            self.line.show(self.line.run(run.done / run.runs, said_of))
        if self.on_run and self.failure is None:
            self.on_run(run)

    def run(self):
        thread = threading.Thread(target=self._work, name="quern", daemon=True)
        thread.start()
        while thread.is_alive() or not self.inbox.empty():
            try:
                run = self.inbox.get(timeout=1)
                if run is not None:
                    self._hear(run)
                else:
                    thread.join()
            except queue.Empty:
                pass
            except BaseException as failure:  # Ctrl-C too
                self.failure = self.failure or failure
                library().qn_search_stop(self.address)
        if self.failure is not None:
            raise self.failure
        if self.status:
            raise of(self.error)

    def result(self, setting, fold):
        r = sized(_abi.qn_search_result)
        call("qn_search_get", self.address, setting, fold, r)
        return r

    def row(self, fold, result):
        return {"fold": fold, "items": result.items,
                **{name: result.number[_NUMBER[name]] for name in self.metrics},
                "model": said(result.model) or None, "seconds": result.seconds}

    def mean(self, setting):
        m = sized(_abi.qn_search_mean)
        call("qn_search_mean_get", self.address, setting, m)
        return m

    def order(self, by):
        found = (C.c_uint32 * len(self.settings))()
        call("qn_search_order", self.address, _NUMBER[by], found)
        return list(found)


def _results(running, folds, by):
    rows, settings, order = [], running.settings, running.order(by)
    for index in order:
        mean = running.mean(index)
        rows.append({**settings[index],
                     **{name: mean.mean[_NUMBER[name]] for name in running.metrics},
                     **{name + "_deviation": mean.deviation[_NUMBER[name]] for name in running.metrics}})
    runs = [{**setting, **running.row(fold, running.result(index, fold))}
            for index, setting in enumerate(settings) for fold in range(folds)]
    return Search(rows, runs, dict(settings[order[0]]), by)


def _choose(by, data):
    """The metrics, and the one that decides: classes and real labels have different ones."""
    real = data.targets is not None
    allowed = ["rmse", "mae", "r2", "loss"] if real else ["accuracy", "f1", "auc", "log_loss", "loss"]
    by = by or allowed[0]
    if by not in allowed:
        raise UsageError(f"by cannot be {by!r} for {'real labels' if real else 'classes'}", "",
                         f"there are: {', '.join(allowed)}")
    return allowed, by


def _option(data, setting, shape, init_from):
    """The options of a training, and what must stay alive with them."""
    o = _abi.qn_train_options()
    library().qn_train_options_init(o)
    kept = _fill(o, dict(setting))
    _set(o, "shape", shape, "shape", kept)
    return o, (kept, _start(o, init_from))


class LearningRates:
    """What `lr_range` found. A notebook shows the picture.

    Attributes
    ----------
    rates, losses, smoothed : list of float
        Of each step: its rate, the loss before its update, and the loss with less noise.
    suggestion : float or None
        The rate where the loss falls most; None: it did not fall.
    cautious : float
        A tenth of the rate with the lowest loss.
    end : str
        Why it ended: "high", "diverged" or "range" (of float32).
    identical : bool
        Whether ``run_dir`` had a record of the same bytes.
    svg, csv, recipe : str
    """

    def __init__(self, found):
        count = found.points
        self.rates, self.losses, self.smoothed = (list(at[:count]) for at in (found.rate, found.loss, found.smoothed))
        self.suggestion, self.cautious = found.suggestion or None, found.cautious
        self.end = ("high", "diverged", "range")[found.end]
        self.identical = bool(found.identical)
        self.svg, self.csv, self.recipe = said(found.svg), said(found.csv), said(found.recipe)

    def __repr__(self):
        return f"<quern.LearningRates: {len(self.rates)} steps, suggested {self.suggestion}>"

    def _repr_svg_(self):
        return self.svg


# Options of a training that a range of learning rates decides itself.
_OF_RANGE = _FILES | {"lr", "schedule", "lr_step", "lr_gamma", "lr_min", "warmup", "stages", "epochs", "patience",
                      "early_stopping", "keep"}


def lr_range(data=None, labels=None, *, low=1e-6, high=10.0, steps=100, run_dir=None, init_from=None, **options):
    """A learning rate from one short training, in which it grows by the same factor after every step,
    as ``quern search --lr-range`` has it. It ends where the loss diverges.

    Parameters
    ----------
    data, labels
        As for `train`.
    low, high : float
        The first and the last rate.
    steps : int
        From low to high, 10 to 100000.
    run_dir : str or path, optional
        A folder for ``lr-range.csv`` and ``lr-range.svg``. A record that is there must be the same.
    init_from : Model or path, optional
        As for `train`, also with ``freeze``.
    **options
        Those of `train`, but for its files, sets, rates and epochs.

    Returns
    -------
    LearningRates
    """
    useless = sorted(_OF_RANGE & set(options))
    if useless:
        raise UsageError(f"{useless[0]} does nothing in a range of learning rates, which is one short training", "",
                         "leave it out")
    start = _start(_abi.qn_train_options(), init_from)
    data, shape, compute, options = _data(data, labels, options, start)
    made, kept = _option(data, options, shape, start)
    kept = (kept, fill_compute(made.compute, compute))
    made.compute.cluster = ranks.current()
    o = _abi.qn_lr_range_options()
    library().qn_lr_range_options_init(o)
    o.train = C.pointer(made)
    for member, value in (("low", low), ("high", high), ("steps", steps)):
        try:
            assign(o, member, value)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{member} cannot be {value!r}", "", "give a number") from None
    o.folder = text(run_dir)
    found = C.POINTER(_abi.qn_lr_range)()
    call("qn_lr_range_find", o, data._address, C.byref(found))
    try:
        return LearningRates(found.contents)
    finally:
        library().qn_lr_range_free(found)
        del kept


def _data(data, labels, options, start=None):
    """The table, the shape of its items, and the words of `options` for devices and all others."""
    columns = {word: options.pop(word) for word in list(options) if word in FILE - {"shape"}}
    columns.update(_sizes(start, data, columns))
    shape = shape_text(options.pop("shape", None))
    compute = {word: options.pop(word) for word in list(options) if word in _COMPUTE}
    if data is None:
        from .data import digits

        data = digits(20000)
    data = data_of(data, labels, **columns)
    return data, shape_of(data, shape), compute, options


def _part(part):
    """The part and how many there are."""
    try:
        number, parts = (int(value) for value in part)
    except (TypeError, ValueError):
        number = parts = 0
    if not 0 < number <= parts < 2**32:
        raise UsageError(f"part cannot be {part!r}", "", "give two numbers such as (2, 4): part 2 of 4")
    return number, parts


def search(data=None, labels=None, *, grid=None, folds=5, by=None, run_dir=None, part=None, merge=False,
           init_from=None, on_run=None, progress=None, **options):
    """Cross validation: each setting of a grid is trained once without each fold of the data, and
    tested on it.

    Whole runs are shared among cores, devices and ranks; the numbers do not depend on how. They are
    those of ``quern search``.

    Parameters
    ----------
    data, labels
        As for `train`.
    grid : dict of lists, optional
        Options of `train` and their values, all combinations of which are tried:
        ``{"lr": [0.01, 0.1], "batch": [64, 128]}``. None: one setting.
    folds : int
        Parts of the data. They follow from the option ``seed``.
    by : str, optional
        What decides: "accuracy", "f1", "auc", "log_loss" or "loss"; of real labels "rmse", "mae",
        "r2" or "loss". Default: the accuracy, of real labels the RMSE.
    run_dir : str or path, optional
        Keep the results in ``run_dir/search.csv``. A search that was interrupted goes on from
        there, in Python or as a command.
    part : (int, int), optional
        Compute the runs of one part only, ``(2, 4)`` for part 2 of 4, into a folder in ``run_dir``.
        Processes that do not know each other, such as the tasks of a job array, so divide a search.
    merge : bool
        Compute nothing: take the results of all parts in ``run_dir``.
    init_from : Model or path, optional
        As for `train`.
    on_run : callable, optional
        Called with a `Run` after each; among ranks on one of them. When it raises, the search ends.
    progress : bool, optional
        Print a line for each run. Default: in a terminal or a notebook.
    **options
        Those of `train`, but for its files and sets. ``threads`` and ``devices`` take whole runs
        each.

    Returns
    -------
    Search
        None after a part.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C. The runs in progress are lost; those before are in ``run_dir``.
    QuernError
        What the library says, as the subclass that fits.
    """
    useless = sorted(_FILES & set(options))
    if useless:
        raise UsageError(f"{useless[0]} does nothing in a search, whose folds are validation sets", "",
                         "leave it out, and train the best setting with it")
    if isinstance(folds, bool) or not isinstance(folds, numbers.Integral) or not 0 < folds < 2**32:
        raise UsageError(f"folds cannot be {folds!r}", "", "give a whole number from 2 to 256")
    settings = _settings({} if grid is None else grid)
    twice = sorted(set(settings[0]) & set(options))
    if twice:
        raise UsageError(f"{twice[0]} is in the grid and an option, too", "", "give it once")
    start = _start(_abi.qn_train_options(), init_from)
    data, shape, compute, options = _data(data, labels, options, start)
    metrics, by = _choose(by, data)
    made = [_option(data, {**options, **setting}, shape, start) for setting in settings]
    o = _abi.qn_search_options()
    library().qn_search_options_init(o)
    kept = fill_compute(o.compute, compute)
    o.compute.cluster = ranks.current()
    pointers = (C.POINTER(_abi.qn_train_options) * len(made))(*(C.pointer(m) for m, _ in made))
    names = (C.c_char_p * len(made))(*(text(_describe(setting)) for setting in settings))
    o.setting, o.settings, o.name = pointers, len(made), names
    o.folds = folds
    o.folder = text(run_dir)
    o.part, o.parts = (0, 0) if part is None else _part(part)
    o.merge = bool(merge)
    running = _Running(o, data, settings, metrics, on_run, Line.wanted(progress))
    try:
        running.run()
        return _results(running, folds, by) if part is None else None
    finally:
        running.release()
        del kept, made
