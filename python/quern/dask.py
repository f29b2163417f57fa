"""Training and prediction on the workers of Dask, where the partitions are.

    import quern.dask
    model = quern.dask.train(client, frame, label="sick", epochs=20)
    classes = quern.dask.predict(model, frame)

Each worker is a rank and has its partitions (docs/engines.md).
"""

import queue
import secrets

import numpy as np

from . import _engine

dask = _engine.need("dask", "dask[distributed]", "quern.dask")  # before what takes a while to load
distributed = _engine.need("distributed", "dask[distributed]", "quern.dask")

from . import estimator  # noqa: E402
from .errors import ClusterError, UsageError  # noqa: E402
from .training import Epoch, Score  # noqa: E402

__all__ = ["Classifier", "Regressor", "predict", "train"]

# Epochs of trainings are events of this name: client.get_events("quern").
TOPIC = "quern"


def train(client, data, labels=None, weights=None, *, workers=None, folder=None, on_epoch=None, on_note=None,
          max_restarts=3, copies=1, part_cache=0, **options):
    """Trains a network on the rows of a Dask collection, with every worker as a rank.

    The model has the bytes that `quern.train` makes of ``data.compute()``: the rows are in the order
    of the partitions, whichever worker has which.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None: the client of this process.
    data : dask DataFrame or dask Array
        The rows. Persisted partitions stay on their workers, but for those that move so that each
        worker has neighbours. A worker without partitions computes, too.
    labels, weights : dask Array or Series, optional
        Of arrays: the labels and weights of the items, divided into as many pieces as `data`. Of
        frames name the columns with ``label`` and ``weight``.
    workers : list of str, optional
        Addresses of the workers to use. Default: all.
    folder : path, optional
        Where a worker writes the rows of its rank. Default: its folder of temporary files. In a folder
        that all workers reach the others read the rows of a worker that dies, and go on.
    on_epoch : callable, optional
        Called in this process with an `Epoch` after each.
    on_note : callable, optional
        Called in this process with messages of the ranks, such as which of them died or joined.
    max_restarts : int
        How often a rank whose worker has died is started again, on a worker that has come meanwhile, if
        the others have its rows and go on: they let it in. How often all begin again when they do not
        have its rows. With ``checkpoint="FOLDER"``, which all workers reach, they continue from there.
    copies : int
        How many workers have the rows of each. With 2 one may die, and the others go on, wherever its
        file was.
    part_cache : int
        MiB of other workers' values that a rank keeps; 0: a quarter of the memory that is available.
    **options
        Those of `quern.train`. By default ``threads`` are those of each worker. Collections as ``valid``
        and ``test`` are computed, and sent to all workers.

    Returns
    -------
    Model
    """
    for word in ("valid", "test"):
        if word in options:
            options[word] = _computed(options[word])
    pieces = _pieces(data, labels, weights)
    options.update(copies=copies, part_cache=part_cache)
    return _train(_client(client), pieces, options, workers, folder, _Epochs(on_epoch, on_note), max_restarts)


def predict(model, data, *, outputs=False, **options):
    """Applies a model where the partitions are.

    Parameters
    ----------
    model : Model
        What `train` returned, or any other model.
    data : dask DataFrame or dask Array
        The items.
    outputs : bool
        All outputs instead of classes.
    **options
        Those of `Model.predict`.

    Returns
    -------
    dask Series, or dask Array
        Of a frame its predictions with the frame's index; of an array, and with `outputs`, an array.
    """
    return _apply(_model_predicts, data, _engine.answers(model, outputs), model.outputs if outputs else 0,
                  model=dask.delayed(model), options={"outputs": outputs, **options})


def _model_predicts(piece, model, options):
    _engine.alone()
    return model.predict(piece, **options)


# ------------------------------------------------------------------------------------- partitions

def _client(client):
    return distributed.get_client() if client is None else client


def _computed(given):
    return dask.compute(given)[0]  # also of collections in a tuple


def _delayed(collection):
    """A Delayed for each partition, in their order. Columns of arrays are put together."""
    if hasattr(collection, "rechunk"):
        if collection.ndim > 1:
            collection = collection.rechunk({axis: -1 for axis in range(1, collection.ndim)})
        return list(collection.to_delayed().ravel())
    return list(collection.to_delayed())


def _pieces(data, labels, weights):
    """The partitions, as rows of Delayed: (frame,), or (values, labels, weights)."""
    if not dask.is_dask_collection(data) or not (hasattr(data, "to_delayed")):
        raise UsageError(f"data cannot be {type(data).__name__}", "", "give a Dask DataFrame or Array; quern.train "
                         "takes tables of this process")
    if labels is None and weights is None:
        return [(piece,) for piece in _delayed(data)]
    columns = [_delayed(data), *(None if one is None else _delayed(one) for one in (labels, weights))]
    for name, column in zip(("labels", "weights"), columns[1:]):
        if column is not None and len(column) != len(columns[0]):
            raise UsageError(f"{name} have {len(column)} pieces and the items {len(columns[0])}", "",
                             "divide both alike, with repartition or rechunk")
    columns = [[None] * len(columns[0]) if column is None else column for column in columns]
    return list(zip(*columns))


def _save(folder, width, *columns, lost=None):
    """In a worker: the partitions of its rank as a file. A row of `width` is a frame, or values with
    labels and weights. `lost` is the file of the worker that had the rank before."""
    worker = distributed.get_worker()
    chunks = list(columns[0]) if width == 1 else [(*row, None, None)[:3] for row in zip(*columns)]
    return _engine.save(folder or worker.local_directory, chunks, lost)


def _address():
    """In a worker: where the ranks meet."""
    host = distributed.get_worker().address.rpartition("://")[2].rpartition(":")[0]
    return _engine.address(host.strip("[]"))


def _rank(task):
    """In a worker: one rank."""
    worker = distributed.get_worker()
    task.options.setdefault("threads", worker.state.nthreads)

    def told(kind, value):
        worker.log_event(TOPIC, {"run": task.name, "rank": task.rank, "ranks": task.ranks, **_event(kind, value)})

    return _engine.run(task, told)


def _rank_elsewhere(task, *rows):
    """In a worker that takes the rank of one that is gone: writes its rows first, `rows` are those of `_save`."""
    part = _save(*rows, lost=task.part)
    try:
        return _rank(task)
    finally:
        part.remove()


def _event(kind, value):
    if kind != "epoch":
        return {kind: value}
    return {word: one._asdict() if isinstance(one, Score) else one for word, one in value._asdict().items()}


def _epoch(event):
    return Epoch(**{word: Score(**event[word]) if isinstance(event[word], dict) else event[word] for word in Epoch._fields})


# ------------------------------------------------------------------------------------- the course of a training

class _Epochs(_engine.Epochs):
    """The epochs of a run, as the workers tell them; what is called is called on the thread that waits."""

    def begin(self, client, name):
        self.client, self.name, self.told = client, name, queue.SimpleQueue()
        if self.on_epoch or self.on_note:
            client.subscribe_topic(TOPIC, self._take)

    def _take(self, event):
        if event[1]["run"] == self.name:
            is_epoch = "epoch" in event[1]
            self.told.put(("epoch", _epoch(event[1])) if is_epoch else ("note", event[1]["note"]))

    def hear_all(self):
        while not self.told.empty():
            self.hear(*self.told.get())

    def end(self, history):
        if self.on_epoch or self.on_note:
            self.client.unsubscribe_topic(TOPIC)
            self.hear_all()
        super().end(history)


def _train(client, pieces, options, workers, folder, epochs, max_restarts, fit=None):
    """The result of all ranks."""
    flat = client.compute([piece for row in pieces for piece in row if piece is not None])
    rest = iter(flat)
    pieces = [tuple(None if piece is None else next(rest) for piece in row) for row in pieces]
    name = secrets.token_hex(8)
    epochs.begin(client, name)
    result = None
    try:
        for _ in range(1 + max_restarts):
            distributed.wait(flat)
            client.gather([future for future in flat if future.status == "error"])  # raises
            result = _once(client, name, pieces, options, workers, folder, epochs.hear_all, fit,
                           _engine.Restarts(max_restarts))
            if result is not None:
                return result.load()
            options = {**options, "resume": True} if options.get("checkpoint") else options
    finally:
        epochs.end(result.history if result else ())
    raise ClusterError(f"a worker died in each of {1 + max_restarts} attempts", "",
                       "look into the logs of the workers: memory may be short")


def _once(client, name, pieces, options, workers, folder, call, fit, restarts):
    """The result of one attempt; None: a worker has died, and its rows with it."""
    there = sorted(client.has_what())
    if workers is not None:
        strange = set(workers) - set(there)
        _engine.must_be(not strange, f"{', '.join(strange)} is not a worker of this cluster", "client.has_what() lists them")
        there = list(workers)
    _engine.must_be(there, "the cluster has no workers", "start some: client.wait_for_workers(1) waits for them")
    has = client.who_has([row[0] for row in pieces])
    dealt = _engine.contiguous([next(iter(has.get(row[0].key, ())), None) for row in pieces], there)

    def one(function, worker, words):
        return client.submit(function, *words, workers=[worker], allow_other_workers=False, pure=False)

    def each(function, arguments):
        return {one(function, worker, words): worker for (worker, _), words in zip(dealt, arguments)}

    parts, ranks = {}, {}
    try:
        with distributed.MultiLock([f"quern {worker}" for worker in there], client=client):
            rows = [(folder, len(pieces[0]), *_columns(pieces[run.start:run.stop])) for _, run in dealt]
            parts = each(_save, rows)
            saved, failures = _settled(client, parts, call)
            if failures:
                return _engine.outcome([], failures)
            saved = client.gather(list(parts))
            meet, failures = _settled(client, each(_address, [()]), call)
            if failures:
                return _engine.outcome([], failures)
            [meet], key = client.gather(meet), _engine.secret()
            arrays = len(pieces[0]) > 1
            tasks = [_engine.Task(name, meet, len(dealt), k, key, part, arrays, options, fit)
                     for k, part in enumerate(saved)]

            def again(k, worker):
                task = tasks[k]._replace(again=True)
                at_home = worker == dealt[k][0]
                return one(_rank, worker, (task,)) if at_home else one(_rank_elsewhere, worker, (task, *rows[k]))

            ranks = each(_rank, [(task,) for task in tasks])
            made, failures = _attended(client, ranks, call, restarts, workers, again)
            return _engine.outcome([] if not made else [made[0].result()], failures)
    finally:
        _clean(client, name, parts, ranks)


def _columns(pieces):
    """Lists of futures, a list for each column of the rows."""
    return [list(column) for column in zip(*pieces) if column[0] is not None] or [[]]


def _ended(client, waiting, call):
    """Waits a moment; those tasks that have ended, or whose worker is gone, with their failure or None. They
    are taken out of `waiting`."""
    try:
        distributed.wait(list(waiting), timeout=0.2, return_when="FIRST_COMPLETED")
    except distributed.TimeoutError:
        pass
    call()
    there, ended = client.has_what(), []
    for future, worker in list(waiting.items()):
        if future.status == "finished":
            ended.append((future, None))
        elif future.status == "error":
            ended.append((future, _failure(future.exception(), worker)))
        elif worker in there and future.status == "pending":
            continue
        else:
            ended.append((future, _engine.Lost("the worker has left the cluster", worker)))
        del waiting[future]
    return ended


def _settled(client, waiting, call):
    """Waits until all tasks have ended: the futures with a result, and failures."""
    waiting, made, failures = dict(waiting), [], []
    while waiting:
        for future, failure in _ended(client, waiting, call):
            if failure is None:
                made.append(future)
            else:
                failures.append(failure)
    return made, failures


def _attended(client, ranks, call, restarts, workers, again):
    """The same for ranks, given in their order, until one has a result and the others are late.

    A rank that is lost is started again if it may be: in its worker, or in one that has none of the ranks.
    ``again(rank, worker)`` is its new future, which is added to `ranks`.
    """
    waiting, made, failures, homeless, late = dict(ranks), [], [], [], _engine.Late()
    rank_of = {future: k for k, future in enumerate(ranks)}
    while waiting and not late(made) and not (made and restarts.all(rank_of[future] for future in waiting)):
        for future, failure in _ended(client, waiting, call):
            if failure is None:
                made.append(future)
                continue
            failures.append(failure)
            if restarts.may(rank_of[future], failure):
                homeless.append((rank_of[future], ranks[future]))
        there = client.has_what() if homeless and waiting and not made else {}
        for rank, had in list(homeless):
            free = set(there) & set(workers or there) - set(ranks.values())
            worker = had if had in there else min(free, default=None)
            if worker is not None:
                homeless.remove((rank, had))
                future = again(rank, worker)
                waiting[future] = ranks[future] = worker
                rank_of[future] = rank
    return made, failures


def _failure(failure, worker):
    return _engine.Lost(str(failure), worker) if isinstance(failure, distributed.KilledWorker) else failure


def _clean(client, name, parts, ranks):
    """Ends ranks that still compute, and removes the files of all."""
    there = client.has_what()
    running = [worker for future, worker in ranks.items() if worker in there and not future.done()]
    if running:
        client.run(_engine.end, name, workers=running, on_error="ignore")
    client.cancel(list(ranks))
    for future, worker in parts.items():
        if worker in there and future.status == "finished":
            client.run(_engine.Part.remove, future.result(), workers=[worker], on_error="ignore")


# ------------------------------------------------------------------------------------- estimators

class _Distributed:
    """What the estimators have in common: `fit` and `predict` of collections. `client`, `workers`,
    `folder`, `max_restarts`, `copies` and `part_cache` are attributes that mean what they do for `train`."""

    client = workers = folder = None
    max_restarts, copies, part_cache = 3, 1, 0

    def fit(self, X, y, sample_weight=None):
        """Trains on a collection, with every worker as a rank.

        Parameters
        ----------
        X : dask DataFrame or dask Array
            Items x features.
        y, sample_weight : dask Series or Array
            Divided into as many pieces as `X`.

        Returns
        -------
        self
        """
        pieces, client = _pieces(X, y, sample_weight), _client(self.client)
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        self._match(len(names) if names else X.shape[1], names, fitting=True)
        self._find_in_all(client, [piece[1] for piece in pieces])
        given = {word: self.options[word] for word in ("checkpoint", "resume") if word in (self.options or {})}
        given.update(copies=self.copies, part_cache=self.part_cache)
        self.model_ = _train(client, pieces, given, self.workers, self.folder, _Epochs(None, None), self.max_restarts,
                             self._plain())
        self._check(self.model_)
        return self

    def _find_in_all(self, client, labels):
        """Sets what all labels decide together."""

    def _plain(self):
        """The same estimator without Dask, for a process that computes."""
        made = self._kind(**self.get_params())
        vars(made).update({word: value for word, value in vars(self).items() if word[-1:] == "_"})
        return made

    def predict(self, X):
        """The prediction for each item, as a Dask Series or Array."""
        self._need_fitted()
        return self._applied(X, "predict", self._answers(), 0)

    def _applied(self, X, method, kind, width):
        return _apply(_estimator_applies, X, kind, width, estimator=dask.delayed(self._plain()), method=method)

    def _answers(self):
        return np.dtype(np.float32)


class Classifier(_Distributed, estimator.Classifier):
    """`quern.Classifier` for collections of Dask. Its parameters and attributes are the same.

    `fit` gives the bytes that `quern.Classifier` gives for all rows in one process, where these are
    more than 1000 and have no weights.

    Attributes
    ----------
    client : distributed.Client
        The cluster; by default the client of this process.
    workers, folder, max_restarts, copies, part_cache
        As for `train`.
    """

    _kind = estimator.Classifier

    def _find_in_all(self, client, labels):
        found = client.gather(client.compute([dask.delayed(_classes)(one) for one in labels]))
        self._find_classes(np.concatenate([one for one in found if len(one)] or found))

    def _answers(self):
        return self.classes_.dtype

    def predict_proba(self, X):
        """The outputs of the network, one for each class, as a Dask Array."""
        self._need_fitted()
        return self._applied(X, "predict_proba", np.dtype(np.float32), len(self.classes_))

    def score(self, X, y):
        """The share of the items whose class is found."""
        return float(np.mean(np.concatenate(dask.compute(*_paired(_right, self.predict(X), y)))))


class Regressor(_Distributed, estimator.Regressor):
    """`quern.Regressor` for collections of Dask, as `Classifier` here is."""

    _kind = estimator.Regressor

    def score(self, X, y):
        """The coefficient of determination."""
        found, given = map(np.concatenate, zip(*dask.compute(*_paired(_both, self.predict(X), y))))
        return float(1 - ((given - found) ** 2).sum() / ((given - given.mean()) ** 2).sum())


def _classes(labels):
    labels = np.asarray(labels)
    return np.unique(estimator._vector(labels, len(labels)))


def _paired(function, *collections):
    return [dask.delayed(function)(*row) for row in zip(*map(_delayed, collections))]


def _right(found, given):
    return np.asarray(found) == np.asarray(given)


def _both(found, given):
    return np.asarray(found, np.float64), np.asarray(given, np.float64)


def _estimator_applies(piece, estimator, method):
    _engine.alone()
    return getattr(estimator, method)(piece)


# ------------------------------------------------------------------------------------- prediction

def _apply(function, data, kind, width, **more):
    """A function of each partition: a Series or an Array with `width` columns; 0: one for each item."""
    if not dask.is_dask_collection(data) or not hasattr(data, "to_delayed"):
        raise UsageError(f"data cannot be {type(data).__name__}", "", "give a Dask DataFrame or Array")
    empty = np.zeros((0, width) if width else 0, kind)
    if hasattr(data, "rechunk"):
        data = data.rechunk({axis: -1 for axis in range(1, data.ndim)})
        chunks = (data.chunks[0], (width,)) if width else (data.chunks[0],)
        return data.map_blocks(function, **more, dtype=kind, meta=empty, chunks=chunks,
                               drop_axis=range(2 if width else 1, data.ndim))
    if width:
        return data.map_partitions(function, **more, meta=empty)
    import pandas

    return data.map_partitions(_as_series, function, **more, meta=pandas.Series(empty, name="prediction"))


def _as_series(piece, function, **more):
    import pandas

    return pandas.Series(function(piece, **more), index=piece.index, name="prediction")
