"""Classifiers and regressors of Spark's ML library, which train where the rows are.

    from quern.spark import Classifier
    model = Classifier(inputCols=["age", "blood"], labelCol="sick", epochs=20).fit(frame)
    model.transform(frame).select("prediction").show()

`fit` is one stage in barrier mode. Each of its tasks is a rank and has the rows of its partition
(docs/engines.md).
"""

import base64
import pickle
import re
import secrets
import time

from . import _engine, _options
from .errors import ClusterError, UsageError

pyspark = _engine.need("pyspark", "pyspark[sql]", "quern.spark")

from pyspark import BarrierTaskContext, TaskContext  # noqa: E402  (after the message above)
from pyspark.ml import Estimator, Model  # noqa: E402
from pyspark.ml.functions import array_to_vector, vector_to_array  # noqa: E402
from pyspark.ml.param import Param, Params, TypeConverters  # noqa: E402
from pyspark.ml.param.shared import (HasFeaturesCol, HasInputCols, HasLabelCol, HasPredictionCol,  # noqa: E402
                                     HasProbabilityCol, HasWeightCol)
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from pyspark.sql.types import ArrayType, DoubleType, NumericType, StringType, StructField, StructType, TimestampType  # noqa: E402

__all__ = ["Classifier", "ClassifierModel", "Regressor", "RegressorModel"]

# What Spark says of partitions that were put together or chosen within a stage in barrier mode.
_UNSUITABLE = "SPARK-24820"
# What it says where fewer cores are there than tasks, and for how many seconds `fit` waits for more.
_FEW, WAIT = "SPARK-24819", 600
# Options of `quern.train` that write files on the machine of a task, or that `fit` sets.
_NOT_HERE = {"resume", "report", "plots", "runs", "run_name", "run_dir", "trace"}
_MORE = ["checkpoint_every", "category", "date_format", "dates", "text", "text_features"]
OPTIONS = sorted((set(_options._RECIPE) | set(_options._COMPUTE)) - _NOT_HERE) + _MORE


class _Columns(HasFeaturesCol, HasInputCols, HasPredictionCol):
    """The columns of the items."""

    def _items(self, dataset):
        """The columns of the items as Arrow has them: one list of numbers, or each by its name."""
        if self.isSet(self.inputCols):
            return [_local(F.col(f"`{name}`"), dataset.schema[name].dataType, name) for name in self.getInputCols()]
        name = self.getFeaturesCol()
        kind = dataset.schema[name].dataType
        if kind.typeName() in ("vectorudt", "vector"):
            return [vector_to_array(F.col(f"`{name}`"), dtype="float32").alias("features")]
        if isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType):
            return [F.col(f"`{name}`").cast("array<float>").alias("features")]
        raise UsageError(f"the column {name} is {kind.simpleString()}", "",
                         "featuresCol is a column of vectors or of arrays of numbers; inputCols are columns of one value")


def _local(column, kind, name):
    """Times as the clock of the session shows them: Arrow and pandas get them alike."""
    return column.cast("timestamp_ntz").alias(name) if isinstance(kind, TimestampType) else column


class _Trained(_Columns, HasLabelCol, HasWeightCol):
    """Parameters of both estimators."""

    numWorkers = Param(Params._dummy(), "numWorkers", "tasks, each of which is a rank; default: one for each "
                       "partition, as many as run at a time", TypeConverters.toInt)
    folder = Param(Params._dummy(), "folder", "where a task writes the rows of its rank; default: its folder of "
                   "temporary files", TypeConverters.toString)
    copies = Param(Params._dummy(), "copies", "how many tasks have the rows of each", TypeConverters.toInt)
    part_cache = Param(Params._dummy(), "part_cache", "MiB of other tasks' values that a rank keeps; default: a quarter "
                       "of the memory that is available", TypeConverters.toInt)


def _words(names):
    for name in names:
        setattr(_Trained, name, Param(Params._dummy(), name, f"the option {name} of quern.train"))


_words(OPTIONS)


class _Estimator(_Trained, Estimator, MLReadable, MLWritable):
    def __init__(self, **params):
        super().__init__()
        self._given(params)

    def _given(self, params):
        unknown = [name for name in params if not self.hasParam(name)]
        if unknown:
            raise _options._unknown(unknown[0], [param.name for param in self.params])
        self._set(**params)

    def setParams(self, **params):
        """Sets parameters by their names."""
        self._given(params)
        return self

    def _fit(self, dataset):
        options = {name: self.getOrDefault(name) for name in [*OPTIONS, "copies", "part_cache"] if self.isSet(name)}
        options.update(task=self._task, label=self.getLabelCol())
        columns = [*self._items(dataset), self._label(dataset)]
        if self.isSet(self.weightCol):
            columns.append(F.col(f"`{self.getWeightCol()}`"))
            options["weight"] = self.getWeightCol()
        result = self._trained(dataset.select(*columns), options)
        made = self._model(result, isinstance(dataset.schema[self.getLabelCol()].dataType, NumericType))
        self._copyValues(made)
        return made

    def _trained(self, rows, options):
        workers = self.getOrDefault(self.numWorkers) if self.isSet(self.numWorkers) else None
        partitions = rows.rdd.getNumPartitions()
        workers = workers or min(partitions, rows.sparkSession.sparkContext.defaultParallelism)
        rank = _Rank(_engine.secret(), secrets.token_hex(8), options,
                     self.getOrDefault(self.folder) if self.isSet(self.folder) else None)
        if workers == partitions:
            try:
                return _in_barrier_mode(rows, rank)
            except Exception as failure:
                if _UNSUITABLE not in str(failure):
                    raise
        return _in_barrier_mode(_contiguous(rows, workers), rank)

    def write(self):
        return DefaultParamsWriter(self)

    @classmethod
    def read(cls):
        return DefaultParamsReader(cls)


def _contiguous(rows, partitions):
    """The rows in their order, as so many partitions."""
    place = f"quern_{secrets.token_hex(4)}"
    rows = rows.withColumn(place, F.monotonically_increasing_id())
    return rows.repartitionByRange(partitions, place).sortWithinPartitions(place).drop(place)


def _in_barrier_mode(rows, rank):
    context, since = rows.sparkSession.sparkContext, time.monotonic()
    grows = not re.fullmatch(r"local(\[.*)?", context.master)
    while True:  # each time anew: Spark keeps the failure of a frame's stage
        answers = rows.mapInArrow(rank, "answer binary", barrier=True)
        answers = answers.repartition(1)  # Spark starts a stage in barrier mode again if it is not the last
        try:
            [row] = answers.collect()
            break
        except Exception as failure:
            if _FEW not in str(failure):
                raise
            if not grows or time.monotonic() - since > WAIT:
                raise ClusterError("the cluster has fewer cores than numWorkers", context.master,
                                   "set numWorkers to fewer tasks, or start more executors") from None
        time.sleep(1)
    kind, value = pickle.loads(row.answer)
    if kind == "failed":
        raise value
    return value


# ------------------------------------------------------------------------------------- a task

class _Rank:
    """One task of the stage. Spark sends it to the executors."""

    def __init__(self, key, name, options, folder):
        self.key, self.name, self.options, self.folder = key, name, options, folder

    def __call__(self, batches):
        import pyarrow

        context = BarrierTaskContext.get()
        part = _engine.Part()
        try:
            try:
                part, failure = _engine.save(self.folder, [self._table(batch) for batch in batches]), None
            except Exception as why:  # of any kind: the other tasks wait for this one
                failure = why
            answer = self._together(context, part, failure)
        finally:
            part.remove()
        if answer is not None:
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([pickle.dumps(answer)], pyarrow.binary())], ["answer"])

    def _table(self, batch):
        """A batch as a table. Numbers that are classes come as whole numbers."""
        import pyarrow

        table = pyarrow.Table.from_batches([batch])
        label = self.options["label"]
        at = table.schema.get_field_index(label)
        if self.options["task"] == "classify" and pyarrow.types.is_floating(table.schema.types[at]):
            try:
                table = table.set_column(at, label, table.column(at).cast(pyarrow.int64()))
            except pyarrow.ArrowInvalid as failure:
                raise UsageError(f"a label of {label} is not a class: {failure}", "", "give whole numbers or texts") from None
        return _wide(table)

    def _together(self, context, part, failure):
        """What the driver gets; None: another task has it."""
        tasks, rank = context.getTaskInfos(), context.partitionId()
        host = tasks[0].address.rpartition(":")[0].strip("[]")
        meet = _gathered(context, (failure, _engine.address(host) if rank == 0 else None))
        failures = [why for why, _ in meet if why is not None]
        if failures:
            return ("failed", failures[0]) if rank == 0 else None
        options = {"threads": context.cpus(), **self.options}
        if options.get("checkpoint"):
            options["resume"] = True
        result, failure = None, None
        try:
            options = {**_devices(context), **options}
            result = _engine.run(_engine.Task(self.name, meet[0][1], len(tasks), rank, self.key, part, False, options))
        except Exception as why:  # of any kind: Spark would try it again
            failure = why
        told = _gathered(context, (result is not None, failure))
        first = next((k for k, (done, _) in enumerate(told) if done), None)
        if first is not None:
            return ("result", result) if rank == first else None
        try:
            _engine.outcome([], [why for _, why in told])
        except Exception as why:
            return ("failed", why) if rank == 0 else None
        raise next(why for _, why in told if isinstance(why, _engine.Lost))  # Spark starts the stage again


def _devices(context):
    """The option for the GPUs that Spark assigns to this task, if it does."""
    assigned = context.resources().get("gpu")
    if assigned is None:
        return {}
    return {"devices": ",".join(["cpu", *(f"cuda:{address}" for address in assigned.addresses)])}


def _gathered(context, message):
    texts = context.allGather(base64.b64encode(pickle.dumps(message)).decode())
    return [pickle.loads(base64.b64decode(text)) for text in texts]


def _wide(table):
    """Columns features_0, features_1, ... instead of one of lists."""
    import pyarrow

    at = table.schema.get_field_index("features")
    if at < 0 or not pyarrow.types.is_list(table.schema.types[at]):
        return table
    lists = table.column(at).combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pyarrow.ChunkedArray) else lists
    if len(lists) == 0 or lists.null_count:
        if len(lists):
            raise UsageError("an item has no features", "", "fill or drop rows whose features are null")
        return table.remove_column(at)
    values = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), -1)
    width = lists.value_lengths().unique()
    if len(width) != 1:
        raise UsageError("items have different numbers of features", "", "give all vectors the same length")
    wide = [pyarrow.array(values[:, k]) for k in range(values.shape[1])]
    rest = table.remove_column(at)
    return pyarrow.table([*wide, *rest.columns], names=[*(f"features_{k}" for k in range(len(wide))), *rest.column_names])


class Classifier(_Estimator, HasProbabilityCol):
    """A network that assigns classes, as an estimator of Spark's ML library.

    Parameters
    ----------
    featuresCol : str
        A column of vectors or arrays of numbers. Default: "features".
    inputCols : list of str
        Instead: columns of numbers, texts (categories), dates or booleans.
    labelCol, weightCol : str
        Columns of the classes, whole numbers or texts, and of weights.
    predictionCol, probabilityCol : str
        Columns that the model adds. Predictions are numbers where labels are, else texts.
    numWorkers : int
        Tasks, each of which is a rank. Spark must be able to run all at a time.
    folder : str
        Where a task writes the rows of its rank. In a folder that all executors reach, other ranks
        read the rows of a rank that dies, and go on.
    copies : int
        How many tasks have the rows of each. With 2 the process of a rank may be killed, and the others
        go on, wherever its file was.
    part_cache : int
        MiB of other tasks' values that a rank keeps. Default: a quarter of the memory that is available.
    **options
        Those of `quern.train`. Each is a parameter: ``ParamGridBuilder().addGrid(c.lr, [0.01, 0.1])``.
        With ``checkpoint``, a folder that all executors reach, a stage that Spark starts again
        continues from there.
    """

    _task = "classify"

    def _label(self, dataset):
        return F.col(f"`{self.getLabelCol()}`")

    def _model(self, result, numeric):
        return ClassifierModel(result, numeric)


class Regressor(_Estimator):
    """A network that predicts a number. The parameters are those of `Classifier` without
    ``probabilityCol``."""

    _task = "regress"

    def _label(self, dataset):
        return F.col(f"`{self.getLabelCol()}`").cast("double")

    def _model(self, result, numeric):
        return RegressorModel(result, numeric)


# ------------------------------------------------------------------------------------- models

class _Writer(MLWriter):
    """A folder: the parameters as Spark writes them, and the model file."""

    def __init__(self, instance):
        super().__init__()
        self.instance = instance

    def saveImpl(self, path):
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sc, extraMetadata={"numeric": self.instance._numeric})
        to = _path(self.sc, path)
        stream = to.getFileSystem(self.sc._jsc.hadoopConfiguration()).create(to, True)
        try:
            stream.write(bytearray(self.instance._bytes))
        finally:
            stream.close()


class _Reader(MLReader):
    def __init__(self, cls):
        super().__init__()
        self.cls = cls

    def load(self, path):
        metadata = DefaultParamsReader.loadMetadata(path, self.sc)
        at = _path(self.sc, path)
        stream = at.getFileSystem(self.sc._jsc.hadoopConfiguration()).open(at)
        try:
            content = bytes(self.sc._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()
        made = self.cls(_engine.Result(content, [], None), metadata["numeric"])
        made._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(made, metadata)
        return made


def _path(sc, folder):
    return sc._jvm.org.apache.hadoop.fs.Path(folder, "model.safetensors")


class _Model(_Trained, Model, MLReadable, MLWritable):
    """A trained network.

    Attributes
    ----------
    native : quern.Model
        The model, for all that Spark does not need: evaluation, ONNX, files.
    history : list of Epoch
        The epochs of the training; empty after `load`.
    report : Report
        How the training went; None after `load`.
    """

    def __init__(self, result, numeric):
        super().__init__()
        self._bytes, self._numeric = result.model, numeric
        self.history, self.report = list(result.history), result.report

    @property
    def native(self):
        return _engine.Result(self._bytes, self.history, self.report).load()

    def write(self):
        return _Writer(self)

    @classmethod
    def read(cls):
        return _Reader(cls)

    def _applied(self, dataset, fields):
        """The data set with a column of a struct of these fields, and its name."""
        from collections.abc import Iterator

        import pandas

        columns = self._items(dataset)
        schema = dataset.select(*columns).schema
        apply = _Applied(self._bytes, schema, self._numeric, len(fields.fields) > 1)

        def answer(batches: Iterator[tuple[pandas.Series, ...]]) -> Iterator[pandas.DataFrame]:
            return map(apply, batches)

        name = f"quern_{secrets.token_hex(4)}"
        return dataset.withColumn(name, F.pandas_udf(answer, fields)(*columns)), name


class _Applied:
    """Applies a model to batches of columns on an executor."""

    def __init__(self, content, schema, numeric, probabilities):
        self.content, self.schema, self.numeric, self.probabilities = content, schema, numeric, probabilities
        self.model = None

    def __call__(self, columns):
        import numpy
        import pandas
        import pyarrow
        from pyspark.sql.pandas.types import to_arrow_type

        columns = (columns,) if isinstance(columns, pandas.Series) else columns
        if self.model is None:
            _engine.alone()
            self.model = _engine.Result(self.content, [], None).load()
        arrays = [pyarrow.Array.from_pandas(column, type=to_arrow_type(field.dataType))
                  for column, field in zip(columns, self.schema.fields)]
        table = _wide(pyarrow.table(arrays, names=self.schema.names))
        context = TaskContext.get()
        found = self.model.predict(table, outputs=self.probabilities, threads=context.cpus() if context else 1)
        if not self.probabilities:
            return pandas.DataFrame({"prediction": found.astype(numpy.float64)})
        if found.shape[1] == 1:  # one sigmoid: that of the second class
            found = numpy.hstack([1 - found, found])
        names = numpy.array(self.model.classes or range(found.shape[1]), object)[found.argmax(1)]
        return pandas.DataFrame({"prediction": names.astype(numpy.float64) if self.numeric else names,
                                 "probability": list(found.astype(numpy.float64))})


class ClassifierModel(_Model, HasProbabilityCol):
    __doc__ = _Model.__doc__

    def _transform(self, dataset):
        kind = DoubleType() if self._numeric else StringType()
        fields = StructType([StructField("prediction", kind), StructField("probability", ArrayType(DoubleType()))])
        dataset, name = self._applied(dataset, fields)
        return dataset.withColumns({self.getPredictionCol(): F.col(name)["prediction"],
                                    self.getProbabilityCol(): array_to_vector(F.col(name)["probability"])}).drop(name)


class RegressorModel(_Model):
    __doc__ = _Model.__doc__

    def _transform(self, dataset):
        dataset, name = self._applied(dataset, StructType([StructField("prediction", DoubleType())]))
        return dataset.withColumn(self.getPredictionCol(), F.col(name)["prediction"]).drop(name)
