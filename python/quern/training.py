"""Training: from data and a recipe to a model."""

import ctypes as C
import math
import numbers
import operator
import queue
import re
import sys
import threading
import time
from typing import NamedTuple, Optional

from . import _abi, ranks
from ._library import call, kinds_of, library, new, owned, said, sized, text
from ._options import FILE, _fill, _set, fill_compute, options
from ._progress import Line
from ._known import as_in
from .data import Data, data_of, is_paths, shape_of, shape_text
from .evaluation import read
from .errors import DiffersError, QuernError, UsageError, of, spelled
from .model import Model, _adapted, _fitted_again, load


class Score(NamedTuple):
    """How well predictions agree with labels. Numbers that do not apply or were not computed are NaN.

    `accuracy` is the share of the items whose class was found. `mae`, `rmse` and `r2` are of real
    labels, in their units. `perplexity` is exp(loss), for models of next tokens.
    """

    items: int
    loss: float
    accuracy: float
    mae: float
    rmse: float
    r2: float

    @property
    def perplexity(self):
        """exp(loss): of a model of next tokens."""
        return math.exp(self.loss)


class Epoch(NamedTuple):
    """An epoch of a training. `valid` and `test` are None where there is no such set. `stage` counts
    from 1; without stages there is one."""

    epoch: int
    epochs: int
    seconds: float
    items_per_second: float
    lr: float
    train: Score
    valid: Optional[Score]
    test: Optional[Score]
    stage: int = 1
    stages: int = 1


class Report(NamedTuple):
    """How a training went; <quern/train.h> explains the numbers.

    `iterations`, `converged` and `largest_slope` are of the optimiser "lbfgs", else 0. The
    evaluations are what `Model.evaluate` returns for both sets, or None.
    """

    seconds: float
    seconds_training: float
    bound: float
    items: int
    steps: int
    resumed_from: int
    train: Score
    valid: Optional[Score]
    test: Optional[Score]
    iterations: int
    converged: bool
    largest_slope: float
    valid_evaluation: Optional[dict]
    test_evaluation: Optional[dict]


def _score(score, real):
    if not score.items:
        return None
    accuracy = float("nan") if real else score.correct / score.items
    return Score(score.items, score.loss, accuracy, score.mae, score.rmse, score.r2)


def _epoch(event):
    scores = (_score(s, event.real) for s in (event.train, event.valid, event.test))
    return Epoch(event.epoch, event.epochs, event.seconds, event.items_per_second,
                 event.learning_rate, *scores, event.stage, event.stages)


def epochs_of(events):
    """What a training has kept of its epochs, for its user. That waits until somebody asks: an epoch
    of a small table takes less time."""
    return [_epoch(event) for event in events]


# ------------------------------------------------------------------------------------- running

# Takes notes that nobody hears, which otherwise wait for the next training. A function of C, in which
# no signal handler of Python runs: what that raises would be lost in a callback.
_UNHEARD = _abi.qn_note_fn(operator.is_)
# More epochs than these are told one by one.
MOST_KEPT = 10000
_WIDTHS = re.compile(r"dense\s+(\d+)")


def _begins(thread):
    """Waits for a thread whose start was interrupted. False: it was not started."""
    end = time.monotonic() + 5
    while not thread.is_alive():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


class _Run:
    """One training. The library trains on a thread of its own, so that Python hears Ctrl-C at once;
    what a user passed runs on the thread that called."""

    def __init__(self, o, sets, on_epoch, on_note, line):
        self.options, self.sets, self.on_epoch = o, sets, on_epoch
        self.on_note, self.line, self.events = on_note, line, []
        self.inbox, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        self.failure, self.stopped = None, False
        self.status, self.error = None, None
        self.caller = threading.get_ident()
        o.compute.cluster = ranks.current()
        self._listen()
        addresses = (s._address if s is not None else None for s in sets)
        self.address = new("qn_train_open", o, *addresses)
        self.release = owned(self, "qn_train_close", self.address)

    def _listen(self):
        """Sets the callbacks. Where nobody waits for what they tell, the library keeps the epochs by
        itself: a call of Python takes longer than an epoch of a small table."""
        o, kinds, self.kept = self.options, kinds_of(_abi.qn_train_options), None
        o.on_note = kinds["on_note"](self._note) if self.line or self.on_note else _UNHEARD
        if self.line:
            o.on_step = kinds["on_step"](lambda _, event: self._show(self.line.step(event.contents)))
        if self.line or self.on_epoch or o.compute.cluster or o.epochs > MOST_KEPT or o.stages:
            o.on_epoch = kinds["on_epoch"](self._epoch)
            return
        self.events = (_abi.qn_epoch_event * o.epochs)()
        self.kept = sized(_abi.qn_epoch_list)
        self.kept.event, self.kept.room = self.events, o.epochs
        self.kept.event_size = C.sizeof(_abi.qn_epoch_event)
        o.on_epoch = C.cast(library().qn_epoch_keep, kinds["on_epoch"])
        o.user = C.addressof(self.kept)

    def _epoch(self, _, event):
        event = _abi.qn_epoch_event.from_buffer_copy(event.contents)
        self.events.append(event)
        if self.line and event.reports:
            self._show(self.line.epoch(_epoch(event)))
        if not self.on_epoch:
            return
        self.inbox.put(("epoch", _epoch(event)))
        while not self.stopped:
            try:
                return self.answers.get(timeout=0.1)
            except queue.Empty:  # the caller is still busy, or has just been interrupted
                pass

    def _note(self, _, message):
        message = spelled(said(message))
        if self.on_note:
            self.inbox.put(("note", message))
        elif self.line:
            self._show(self.line.note(message))

    def _show(self, shown):
        """On the thread that called: a notebook files what another one shows under a later cell."""
        if not shown:
            return
        if threading.get_ident() == self.caller:
            self.line.show(shown)
        else:
            self.inbox.put(("line", shown))

    def _work(self):
        self.error = _abi.qn_error()
        self.status = library().qn_train_run(self.address, self.error)
        self.inbox.put((None, None))

    def stop(self):
        self.stopped = True
        library().qn_train_stop(self.address)

    def _hear(self, kind, value):
        """Calls what the user passed."""
        if kind == "note":
            self.on_note(value)
            return
        import numpy as np

        answer = self.on_epoch(value)
        if isinstance(answer, (bool, np.bool_)) and not answer:
            self.stop()

    def run(self):
        """Trains. Returns True when all epochs were done; raises what a callback raised."""
        if self._is_short():
            self._work()
            return self._ended()
        thread = threading.Thread(target=self._work, name="quern", daemon=True)
        try:
            thread.start()
        except BaseException as failure:  # Ctrl-C while the thread begins: it is waited for, as below
            if not _begins(thread) and self.status is None:
                raise
            self.failure = failure
            self.stop()
        while thread.is_alive() or not self.inbox.empty():
            try:
                self._serve()
                thread.join(0.0 if self.status is None else None)
            except BaseException as failure:  # Ctrl-C too: the step is finished first
                self.failure = self.failure or failure
                self.stop()
        if self.line:
            self.line.end(self.status == _abi.QN_OK)
        return self._ended()

    def _is_short(self):
        """Whether the training takes less than Ctrl-C can wait, so that a thread of its own would be
        the greater part of it."""
        o = self.options
        widths = [int(width) for width in _WIDTHS.findall(said(o.model) or "")]
        if self.kept is None or not widths or not o.batch:
            return False
        items = sum(len(data) for data in self.sets if data is not None)
        steps = o.epochs * -(-items // o.batch)
        inputs = [library().qn_data_inputs(self.sets[0]._address), *widths]
        weights = sum((before + 1) * width for before, width in zip(inputs, widths))
        return steps <= 2000 and o.epochs * items * weights <= 10**8

    def _serve(self):
        """Waits for something to do and does it."""
        try:
            kind, value = self.inbox.get(timeout=1)
        except queue.Empty:
            return
        if kind == "line":
            self.line.show(value)
        elif kind and self.failure is None:
            self._hear(kind, value)
        if kind == "epoch":
            self.answers.put(None)

    def _ended(self):
        if self.failure is not None:
            raise self.failure
        if self.status == _abi.QN_INTERRUPTED:
            return False
        if self.status:
            raise of(self.error)
        return True

    def report(self, real):
        r = sized(_abi.qn_train_report)
        call("qn_train_report_get", self.address, r)
        scores = (_score(s, real) for s in (r.train, r.valid, r.test))
        return Report(r.seconds, r.seconds_training, r.bound, r.items, r.steps, r.resumed_from,
                      *scores, r.iterations, bool(r.converged), r.largest_slope,
                      *(read(e.contents) if e else None
                        for e in (r.valid_evaluation, r.test_evaluation)))

    def model(self, complete):
        events = self.events
        if self.kept and self.kept.count < len(events):
            events = events[:self.kept.count]
        made = Model(new("qn_train_model", self.address), lambda: epochs_of(events), None, complete)
        if complete:
            made.report = self.report(made.real)
        return made

    def close(self):
        self.release()


def train(data=None, labels=None, *, test=None, valid=None, init_from=None, output=None,
          on_epoch=None, on_note=None, progress=None, **options):
    """Trains a network.

    Parameters
    ----------
    data : Data, array_like, DataFrame, str or path, optional
        The training data, or the name of its file. None: the built-in digits, with their test set.
    labels : array_like, optional
        The classes, where `data` is a table without them. For a file, the name of its file of
        labels. Or ``label="sick"`` names the column of a file or of a table with named columns.
    test : Data, pair or path, optional
        Test set, evaluated after each epoch. It never changes the model.
    valid : float, Data, pair or path, optional
        Validation set, or the fraction of the training data to set aside.
    init_from : Model or path, optional
        A model whose parameters the training starts from. Without ``model`` its layers are taken,
        and images in files are resized as it says unless ``resize`` is given, and an imported model's
        means and deviations are kept unless ``scale`` is given.
    output : str or path, optional
        Model file to write. Among ranks any of them can write it.
    on_epoch : callable, optional
        Called with an `Epoch` after each. When it returns False the training ends there; when it
        raises, the training ends and the exception is raised again.
    on_note : callable, optional
        Called with messages for the user, such as a lost device.
    progress : bool, optional
        Print a line of progress. Default: in a terminal or a notebook.
    **options
        The options of ``quern train`` with underscores, such as ``model="dense 50 relu; dense 10
        softmax"`` (or the name of a ready model, or the `pathlib.Path` of a text), ``epochs=20``,
        ``batch=128``, ``lr=0.05``, ``optimizer="adam"``, ``threads=4``, ``devices="cpu"``, ``checkpoint="folder"``. `quern.options` lists them. And
        ``label``, ``features`` and ``drop`` for files and tables with named columns, the other
        options of `open` for files, and ``task`` for all.

    Returns
    -------
    Model

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, when the current step is done. With ``checkpoint`` the state is saved, and
        ``resume=True`` continues.
    QuernError
        What the library says, as the subclass that fits.
    """
    o = _abi.qn_train_options()
    library().qn_train_options_init(o)
    if isinstance(valid, numbers.Real):  # NumPy's numbers too
        options["valid"], valid = valid, None
    # The shape is one of the training, too, so that arrays can have it.
    columns = {word: options.pop(word) for word in list(options) if word in FILE - {"shape"}}
    shape = shape_text(options.pop("shape", None))
    kept = _fill(o, options)
    start = _start(o, init_from)
    columns.update(_sizes(start, data, columns))
    sets = _sets(data, labels, valid, test, columns)
    shape = shape_of(sets[0], shape)
    for other in sets[1:]:
        if other is not None:
            shape_of(other, shape)
    _set(o, "shape", shape, "shape", kept)
    kept.append(_settle(o, sets[0]))
    o.command_line = text(" ".join(sys.argv) or "python")
    run = _Run(o, sets, on_epoch, on_note, Line.wanted(progress))
    try:
        complete = run.run()
        made = run.model(complete)
        if output is not None:
            made._must_be_complete()
            _save(run, output)
        return made
    finally:
        run.close()
        del kept, start


def _settle(o, data):
    """Gives the options that nothing was said about the values that suit the data; returns what must
    stay alive. Of options that do not fit `qn_train_open` says what is wrong."""
    layers, error = C.create_string_buffer(256), _abi.qn_error()
    if not library().qn_train_options_settle(o, data._address, error) and o.model is None:
        if not library().qn_train_model_text(o, data._address, layers, len(layers), error):
            o.model = C.cast(layers, C.c_char_p)
    return layers


def _start(o, init_from):
    """Sets the model to start from; returns what must stay alive."""
    if init_from is not None:
        init_from = init_from if isinstance(init_from, Model) else load(init_from)
        o.init_from = init_from._address
    return init_from


def _sizes(start, data, columns):
    """What images in files become for a model to start from: channels, and where `columns` does not say it, the size."""
    if not start:
        return {}
    tokens, context, tokenizer = (library().qn_model_tokens(start._address), library().qn_model_context(start._address),
                                  library().qn_model_tokenizer(start._address))
    as_before = {"expected_tokens": said(tokens), "expected_context": context, "expected_tokenizer": said(tokenizer)}
    as_before = {word: value for word, value in as_before.items() if value}
    if not is_paths(data):
        return {} if isinstance(data, Data) else as_before
    resize = said(library().qn_model_resize(start._address))
    sized = {"expected_resize": resize} if resize and not columns.get("resize") else {}
    return {"expected_features": start.inputs, **sized, **as_before}


def _sets(data, labels, valid, test, columns):
    """The sets for training, validation and test."""
    if data is None:
        from .data import digits

        data = digits(20000)
        test = digits(4000, first=20000) if test is None else test
    first = data_of(data, labels, **columns)
    if valid is None and test is None:
        return first, None, None
    weight = first.weight_name or columns.pop("weight", None)  # of the first table alone
    columns.pop("weight", None)
    columns.pop("text_features", None)
    columns = as_in(columns, first.targets is not None, first.label_name, first._kinds,
                    weight=weight, features=first.features, rules=first._rules,
                    date_format=said(library().qn_data_date_format(first._address)),
                    tokens=said(library().qn_data_tokens(first._address)),
                    context=library().qn_data_context(first._address),
                    tokenizer=said(library().qn_data_tokenizer(first._address)),
                    texts=[library().qn_data_text_inputs(first._address, k) for k in range(first.features)])
    chosen = ("label", "features", "drop", "category", "text")
    rest = {word: value for word, value in columns.items() if word not in chosen}
    return (first, *(data_of(other, **(columns if is_paths(other) or not isinstance(other, (Data, tuple))
                                       else rest))
                     if other is not None else None for other in (valid, test)))


def _save(run, path):
    saved = sized(_abi.qn_saved)
    place = (C.c_char_p * 1)(text(path))
    try:
        call("qn_train_save", run.address, place, 1, saved)
    except QuernError:
        raise (of(saved.why) if saved.why.status else sys.exc_info()[1]) from None


def replay(model, data=None, labels=None, *, valid=None, init_from=None, progress=None, **compute):
    """Trains again by the recipe in a model and compares the bytes.

    Parameters
    ----------
    model : Model, str or path
        The model, of any kind: what `KMeans` and others fitted is fitted again.
    data, labels, valid, init_from
        What it was trained on and started from, as for `train`.
    progress : bool, optional
        As for `train`.
    **compute
        ``devices``, ``threads`` and the other options that choose devices; ``label`` and the other
        options of `open` for a file.

    Returns
    -------
    Model
        The same model, trained again.

    Raises
    ------
    DiffersError
        The bytes differ.
    MismatchError
        The data is not that of the recipe.
    """
    from . import _arrow

    if not isinstance(model, Model):
        model = load(model) if init_from is None else _adapted(model, init_from)
    columns = {word: compute.pop(word) for word in list(compute) if word in FILE}
    columns = model._as_trained(columns)
    if is_paths(data) or _arrow.is_table(data):
        columns.setdefault("weight", columns.pop("expected_weight", None))
    if model.kind != "network":
        if data is None or valid is not None or init_from is not None:
            raise UsageError(f"a model of the kind {model.kind} is fitted to data alone", "",
                             "give `data`, and neither `valid` nor `init_from`")
        return _same(model, _fitted_again(model, data_of(data, labels, **columns), compute))
    sets = _sets(data, labels, valid, None, columns)
    o = _abi.qn_train_options()
    library().qn_train_options_init(o)
    start = _start(o, init_from)
    call("qn_train_options_from_model", model._address, sets[0]._address, o)
    kept = fill_compute(o.compute, compute)
    run = _Run(o, sets, None, None, Line.wanted(progress))
    try:
        run.run()
        again = run.model(True)
    finally:
        run.close()
        del kept, start
    return _same(model, again)


def _same(model, again):
    if again.digest != model.digest:
        raise DiffersError(f"the replay differs: {model.digest} became {again.digest}", "",
                           "the model was changed after training, or a device computed wrongly")
    return again
