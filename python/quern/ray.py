"""Training and prediction on a Ray cluster: ranks are actors, and rows come from a `ray.data.Dataset`.

    import quern.ray
    model = quern.ray.train(dataset, label="sick", epochs=20, ranks=4, cpus=8)
    answers = quern.ray.predict(model, dataset)

docs/engines.md describes it.
"""

import os
import secrets
import tempfile

from . import _engine

ray = _engine.need("ray", "ray[data]", "quern.ray")  # before what takes a while to load
_engine.need("ray.data", "ray[data]", "quern.ray")

import ray.exceptions  # noqa: E402
import ray.util.metrics  # noqa: E402
import ray.util.queue  # noqa: E402
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: E402

from .errors import ClusterError, UsageError  # noqa: E402

__all__ = ["Trainer", "metrics", "predict", "train", "trainable"]

# The file of the model in a checkpoint of Ray.
MODEL = "model.safetensors"


def train(dataset, *, ranks=None, cpus=1, gpus=0, resources=None, strategy="SPREAD", folder=None, on_epoch=None,
          on_note=None, max_restarts=3, timeout=300, copies=1, part_cache=0, **options):
    """Trains a network on the rows of a data set of Ray, with actors as ranks.

    The model has the bytes that `quern.train` makes of ``dataset.to_pandas()``: the rows are in the
    order of the blocks.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The rows. It is executed with the order of its blocks preserved, and its blocks stay in
        the object store until the training ends.
    ranks : int, optional
        How many actors. Default: as many as the cluster has nodes.
    cpus, gpus : float
        What Ray reserves for each of them. The threads of a rank are its CPUs. Its devices are those
        that Ray gives it; without a GPU it is the CPU alone.
    resources : dict, optional
        Other resources of each actor.
    strategy : str
        Of the placement group: "SPREAD", "PACK", "STRICT_SPREAD", "STRICT_PACK".
    folder : path, optional
        Where an actor writes the rows of its rank; default: the folder of temporary files. In a folder
        that all nodes reach, others read the rows of an actor whose node is lost.
    on_epoch : callable, optional
        Called in this process with an `Epoch` after each.
    on_note : callable, optional
        Called in this process with messages of the ranks, such as which of them died or joined.
    max_restarts : int
        How often a new actor takes the place of one that has died, while the others go on: they have
        its rows, and let it in. How often all begin again when they do not have its rows, or rank 0
        has died with others. With ``checkpoint="FOLDER"``, which all nodes reach, they continue there.
    timeout : float
        Seconds to wait for the resources.
    copies : int
        How many actors have the rows of each. With 2 one may die, and the others go on, wherever its
        file was.
    part_cache : int
        MiB of other actors' values that a rank keeps; 0: a quarter of the memory that is available.
    **options
        Those of `quern.train`. A data set of Ray as ``valid`` or ``test`` is sent to all ranks as a table.

    Returns
    -------
    Model
    """
    _must_be_dataset(dataset)
    for word in ("valid", "test"):
        if isinstance(options.get(word), ray.data.Dataset):
            options[word] = options[word].to_pandas()
    count = len([node for node in ray.nodes() if node["Alive"]]) if ranks is None else ranks
    _engine.must_be(isinstance(count, int) and count > 0, f"ranks cannot be {ranks!r}", "give a whole number from 1")
    options.setdefault("threads", max(int(cpus), 1))
    options.update(copies=copies, part_cache=part_cache)
    if not gpus:
        options.setdefault("devices", "cpu")
    bundle = {word: amount for word, amount in {"CPU": cpus, "GPU": gpus, **(resources or {})}.items() if amount}
    blocks = _blocks(dataset, count)
    told = ray.util.queue.Queue(actor_options={"num_cpus": 0})
    epochs = _engine.Epochs(on_epoch, on_note)
    name = secrets.token_hex(8)
    try:
        for _ in range(1 + max_restarts):
            with _Group(count, bundle, strategy, timeout) as group:
                result = _once(group, name, blocks, options, folder, told, epochs, _engine.Restarts(max_restarts))
            if result is not None:
                epochs.end(result.history)
                return result.load()
            options = {**options, "resume": True} if options.get("checkpoint") else options
    finally:
        told.shutdown(force=True)
    raise ClusterError(f"an actor died in each of {1 + max_restarts} attempts", "",
                       "look into the logs of Ray: memory may be short")


def predict(model, dataset, *, outputs=False, column="prediction", batch_size=4096, **more):
    """Applies a model to the rows of a data set, by `Dataset.map_batches`.

    Parameters
    ----------
    model : Model
        Any model.
    dataset : ray.data.Dataset
        The rows.
    outputs : bool
        All outputs, a list for each row, instead of classes.
    column : str
        Name of the column that is added.
    batch_size : int
        Rows of a batch.
    **more
        Other arguments of `map_batches`, such as ``num_cpus``, ``num_gpus`` and ``concurrency``.

    Returns
    -------
    ray.data.Dataset
        The rows with their predictions. It is lazy.
    """
    _must_be_dataset(dataset)
    given = {"model": ray.put(model), "outputs": outputs, "column": column, "gpus": bool(more.get("num_gpus"))}
    return dataset.map_batches(_predicts, fn_kwargs=given, batch_format="pyarrow", batch_size=batch_size, **more)


def metrics(epoch):
    """The numbers of an `Epoch` as a dict for ``ray.tune.report`` and ``ray.train.report``: "epoch",
    "loss", "accuracy", "valid_loss" and others. Numbers that do not apply are left out."""
    found = {"epoch": epoch.epoch, "lr": epoch.lr, "items_per_second": epoch.items_per_second}
    for word in ("train", "valid", "test"):
        score = getattr(epoch, word)
        if score is not None:
            first = "" if word == "train" else f"{word}_"
            found.update({first + name: value for name, value in score._asdict().items() if value == value})
    return found


def trainable(data, labels=None, **options):
    """A function for ``ray.tune.Tuner``: each trial is a `quern.train` with the options of its config.

        tuner = ray.tune.Tuner(quern.ray.trainable(frame, label="sick", valid=0.2),
                               param_space={"lr": ray.tune.grid_search([0.01, 0.1])})

    Each epoch reports its `metrics`; the last report has a checkpoint with the model, which
    ``quern.load(os.path.join(folder, quern.ray.MODEL))`` reads. A trial uses the CPUs that Tune gives it.

    Parameters
    ----------
    data, labels, **options
        As for `quern.train`. A data set of Ray is a table in each trial.
    """
    tune = _engine.need("ray.tune", "ray[tune]", "quern.ray.trainable")
    if isinstance(data, ray.data.Dataset):
        data = data.to_pandas()
    return tune.with_parameters(_trial, given=(data, labels, options))


# ------------------------------------------------------------------------------------- rows

def _must_be_dataset(dataset):
    if not isinstance(dataset, ray.data.Dataset):
        raise UsageError(f"dataset cannot be {type(dataset).__name__}", "",
                         "give a ray.data.Dataset, such as ray.data.from_pandas makes")


def _blocks(dataset, count):
    """The blocks as Arrow tables in the object store, in their order; at least `count`, if there are rows."""
    execution = dataset.context.execution_options
    before, execution.preserve_order = execution.preserve_order, True
    try:
        dataset = dataset.materialize()
        if dataset.num_blocks() < count:
            dataset = dataset.repartition(count).materialize()
        return dataset.to_arrow_refs()
    finally:
        execution.preserve_order = before


def _predicts(batch, model, outputs, column, gpus):
    import numpy as np
    import pyarrow

    _engine.alone()
    model = ray.get(model) if isinstance(model, ray.ObjectRef) else model
    found = np.asarray(model.predict(batch, outputs=outputs, **({} if gpus else {"devices": "cpu"})))
    if found.ndim > 1:
        values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(found.reshape(-1)), found[0].size)
    else:
        values = pyarrow.array(found)
    return batch.append_column(column, values)


# ------------------------------------------------------------------------------------- actors

class _Worker:
    """An actor, which has one rank."""

    def save(self, folder, blocks, lost=None):
        self.part = _engine.save(folder, [table for table in ray.get(blocks)], lost)
        return self.part

    def address(self):
        return _engine.address(ray.util.get_node_ip_address())

    def run(self, task, told, blocks=None, folder=None):
        """The rank. With `blocks` it writes its rows first: the actor that did so is gone."""
        gauges = {}
        if blocks is not None:
            self.save(folder, blocks, task.part)

        def tell(kind, value):
            if kind == "epoch":
                for word, number in metrics(value).items():
                    if word not in gauges:
                        gauges[word] = ray.util.metrics.Gauge(f"quern_{word}", tag_keys=("run",))
                    gauges[word].set(number, tags={"run": task.name})
            told.put((kind, value))

        return _engine.run(task, tell)

    def remove(self):
        self.part.remove()


class _Group:
    """Actors in a placement group."""

    def __init__(self, count, bundle, strategy, timeout):
        self.group = ray.util.placement_group([dict(bundle) for _ in range(count)], strategy=strategy)
        self.actors = []
        if not self.group.wait(timeout):
            ray.util.remove_placement_group(self.group)
            needs = ", ".join(f"{amount:g} {word}" for word, amount in bundle.items())
            raise ClusterError(f"the cluster has no room for {count} ranks of {needs} after {timeout:g} seconds", "",
                               "give fewer ranks or cpus")
        self.bundle = bundle
        self.actors = [self._actor(k) for k in range(count)]

    def _actor(self, k):
        more = {word: amount for word, amount in self.bundle.items() if word not in ("CPU", "GPU")}
        place = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=k)
        return ray.remote(_Worker).options(
            num_cpus=self.bundle.get("CPU", 0), num_gpus=self.bundle.get("GPU", 0), resources=more,
            scheduling_strategy=place, max_concurrency=2).remote()

    def renew(self, k):
        """A new actor in the place of one that has died."""
        self.actors[k] = self._actor(k)
        return self.actors[k]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ray.wait([actor.remove.remote() for actor in self.actors], num_returns=len(self.actors), timeout=10)
        for actor in self.actors:
            ray.kill(actor)  # and with it the process of its rank
        ray.util.remove_placement_group(self.group)


def _once(group, name, blocks, options, folder, told, epochs, restarts):
    """The result of one attempt; None: an actor has died, and its rows with it."""
    count = len(group.actors)
    cuts = [round(len(blocks) * k / count) for k in range(count + 1)]
    shares = [blocks[cuts[k]:cuts[k + 1]] for k in range(count)]
    parts, failures = _settled([actor.save.remote(folder, share) for actor, share in zip(group.actors, shares)])
    if failures:
        return _engine.outcome([], failures)
    meet, failures = _settled([group.actors[0].address.remote()])
    if failures:
        return _engine.outcome([], failures)
    key = _engine.secret()
    tasks = [_engine.Task(name, meet[0], count, k, key, part, False, options) for k, part in enumerate(parts)]

    def call():
        for kind, value in told.get_nowait_batch(told.qsize()):
            epochs.hear(kind, value)

    def again(k, actor_died):
        task = tasks[k]._replace(again=True)
        if not actor_died:
            return group.actors[k].run.remote(task, told)
        return group.renew(k).run.remote(task, told, shares[k], folder)

    results, failures = _settled([actor.run.remote(task, told) for actor, task in zip(group.actors, tasks)], call,
                                 _engine.Late(), most=1, restarts=restarts, again=again)
    return _engine.outcome(results, failures)


def _settled(calls, hear=lambda: None, late=lambda results: False, most=None, restarts=_engine.Restarts(0), again=None):
    """Waits until each call of an actor has ended: what they return, of `most` of them, and failures. Those
    that are `late` then are left out. ``again(k, actor_died)`` is the call in the place of one that was lost."""
    results, failures, waiting = {}, [], {one: k for k, one in enumerate(calls)}
    while waiting and not late(results) and not (results and restarts.all(waiting.values())):
        ended, _ = ray.wait(list(waiting), timeout=0.2)
        hear()
        for one in ended:
            k, actor_died = waiting.pop(one), False
            try:
                if most is None or len(results) < most:
                    results[k] = ray.get(one)
                continue
            except ray.exceptions.RayTaskError as failure:
                failures.append(failure.cause)
            except ray.exceptions.RayError as failure:
                failures.append(_engine.Lost(f"an actor has died: {failure}"))
                actor_died = True
            if waiting and not results and restarts.may(k, failures[-1]):
                waiting[again(k, actor_died)] = k
    return [results[k] for k in sorted(results)], failures


# ------------------------------------------------------------------------------------- Ray Train and Ray Tune

def _saved(model):
    """A checkpoint of Ray with the model."""
    folder = tempfile.mkdtemp(prefix="quern-")
    model.save(os.path.join(folder, MODEL))
    return folder


def _trial(config, given):
    import shutil

    from ray import tune

    from .training import train as train_alone

    data, labels, options = given
    cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    options = {"threads": max(int(cpus), 1), **options, **config}
    _engine.alone()
    model = train_alone(data, labels, progress=False, on_epoch=lambda epoch: tune.report(metrics(epoch)), **options)
    folder = _saved(model)
    tune.report(metrics(model.history[-1]), checkpoint=tune.Checkpoint.from_directory(folder))
    shutil.rmtree(folder)


class Trainer:
    """`train` in the style of the trainers of Ray Train.

        result = quern.ray.Trainer({"train": dataset}, label="sick", epochs=20,
                                   scaling_config=ray.train.ScalingConfig(num_workers=4)).fit()
        model = quern.load(os.path.join(result.checkpoint.path, quern.ray.MODEL))

    Parameters
    ----------
    datasets : dict
        "train", and perhaps "valid" and "test".
    scaling_config : ray.train.ScalingConfig, optional
        Of it: `num_workers`, `use_gpu`, `resources_per_worker`, `placement_strategy`.
    run_config : ray.train.RunConfig, optional
        Of it: `name`, `storage_path` (a folder), `failure_config.max_failures`.
    **options
        Those of `train`.
    """

    def __init__(self, datasets, *, scaling_config=None, run_config=None, **options):
        self._train = _engine.need("ray.train", "ray[train]", "quern.ray.Trainer")
        strange = set(datasets) - {"train", "valid", "test"}
        _engine.must_be(not strange and "train" in datasets, f"datasets cannot have {sorted(datasets)}",
                        'give "train", and perhaps "valid" and "test"')
        self.datasets, self.options = dict(datasets), options
        self.scaling, self.run = scaling_config or self._train.ScalingConfig(), run_config or self._train.RunConfig()

    def fit(self):
        """Trains, and returns a `ray.train.Result`: its metrics are those of the last epoch, its
        `metrics_dataframe` has all epochs, and its checkpoint the model."""
        import pandas

        scaling, run = self.scaling, self.run
        resources = dict(scaling.resources_per_worker or {"CPU": 1})
        options = {"ranks": scaling.num_workers, "cpus": resources.pop("CPU", 1), "strategy": scaling.placement_strategy,
                   "gpus": resources.pop("GPU", 1 if scaling.use_gpu else 0), "resources": resources}
        if run.failure_config is not None and run.failure_config.max_failures >= 0:
            options["max_restarts"] = run.failure_config.max_failures
        others = {word: data for word, data in self.datasets.items() if word != "train"}
        model = train(self.datasets["train"], **{**options, **others, **self.options})
        place = os.path.join(os.path.expanduser(run.storage_path or "~/ray_results"),
                             run.name or f"quern-{secrets.token_hex(4)}")
        folder = os.path.join(place, "checkpoint")
        os.makedirs(folder, exist_ok=True)
        model.save(os.path.join(folder, MODEL))
        rows = [metrics(epoch) for epoch in model.history]
        return self._train.Result(metrics=rows[-1], checkpoint=self._train.Checkpoint.from_directory(folder), error=None,
                                  path=place, metrics_dataframe=pandas.DataFrame(rows))
