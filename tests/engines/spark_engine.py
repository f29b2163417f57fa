"""Spark in one process and with executors: the bytes of one process, and ranks and workers that are killed."""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pandas
import pytest

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import quern  # noqa: E402
from pyspark.ml import Pipeline, PipelineModel  # noqa: E402
from pyspark.ml.evaluation import MulticlassClassificationEvaluator  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from quern.spark import Classifier, ClassifierModel, Regressor, RegressorModel  # noqa: E402

ITEMS = ["a", "b", "c", "day"]
HOW = {"epochs": 3, "missing": "mean", "seed": 5}


def session(master):
    made = (SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
    made.sparkContext.setLogLevel("OFF")
    return made


@pytest.fixture(scope="module")
def local():
    made = session("local[4]")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(1)
    a, b = random.normal(size=(2, 600)).round(3)
    made = pandas.DataFrame({"a": a, "b": b, "c": random.choice(["u", "v", "w"], 600), "sick": np.where(a + b > 0, "yes", "no"),
                             "kind": (a > 0) + 1.0 * (b > 0.5), "size": 2 * a + b, "weight": random.integers(1, 4, 600)})
    times = pandas.Timestamp("2026-01-31 21:30") + pandas.to_timedelta(random.integers(0, 10**6, 600), "s")
    made["day"] = times.date
    made.loc[3, "b"] = np.nan
    return made


def alone(table, **options):
    return quern.train(table, progress=False, **options)


def test_a_frame(local, table, tmp_path):
    frame = local.createDataFrame(table).repartition(2).localCheckpoint()
    whole = frame.toPandas()
    one = alone(whole[[*ITEMS, "sick"]], label="sick", **HOW)
    made = Classifier(inputCols=ITEMS, labelCol="sick", **HOW).fit(frame)
    assert made.native.digest == one.digest
    assert [epoch.epoch for epoch in made.history] == [1, 2, 3] and repr(made.history[2].train) == repr(one.history[2].train)
    found = made.transform(frame).toPandas()
    assert list(found.columns) == [*table.columns, "prediction", "probability"]
    assert (found["prediction"] == one.predict(whole[ITEMS])).all()
    assert np.array_equal(np.stack([p.toArray() for p in found["probability"]]), one.predict(whole[ITEMS], outputs=True))
    made.write().overwrite().save(str(tmp_path / "m"))
    again = ClassifierModel.load(str(tmp_path / "m"))
    assert quern.load(tmp_path / "m" / "model.safetensors").digest == again.native.digest == one.digest
    assert again.getLabelCol() == "sick" and again.history == [] and again.uid == made.uid
    assert again.transform(frame).toPandas()["prediction"].equals(found["prediction"])
    # Frames that Spark cannot take in barrier mode as they are, and other numbers of tasks.
    twice = frame.union(frame)
    for workers in (None, 1, 3):
        of_both = Classifier(inputCols=["a", "c"], labelCol="sick", epochs=1, **({"numWorkers": workers} if workers else {})).fit(twice)
        both = twice.select("a", "c", "sick").toPandas()
        assert of_both.native.digest == alone(both, label="sick", epochs=1).digest


def test_vectors_weights_and_numbers(local, table, tmp_path):
    frame = local.createDataFrame(table.fillna(0)).coalesce(2).localCheckpoint()
    whole = frame.toPandas()
    steps = [VectorAssembler(inputCols=["a", "b"], outputCol="features"), Classifier(labelCol="kind", weightCol="weight", epochs=2)]
    made = Pipeline(stages=steps).fit(frame)
    wide = pandas.DataFrame({"features_0": whole["a"].astype(np.float32), "features_1": whole["b"].astype(np.float32),
                             "kind": whole["kind"].astype(int), "weight": whole["weight"]})
    one = alone(wide, label="kind", weight="weight", epochs=2)
    assert made.stages[1].native.digest == one.digest
    made.write().overwrite().save(str(tmp_path / "p"))
    found = PipelineModel.load(str(tmp_path / "p")).transform(frame).toPandas()
    assert found["prediction"].dtype == np.float64 and (found["prediction"] == one.predict(wide[["features_0", "features_1"]])).all()
    made = Regressor(inputCols=["a", "b"], labelCol="size", epochs=2, predictionCol="guess").fit(frame)
    one = alone(whole[["a", "b", "size"]], label="size", epochs=2)
    assert made.native.digest == one.digest
    made.save(str(tmp_path / "r"))
    found = RegressorModel.load(str(tmp_path / "r")).transform(frame).toPandas()["guess"]
    assert np.array_equal(found.to_numpy(), one.predict(whole[["a", "b"]]).astype(np.float64))


def test_cross_validation(local, table):
    """Options are parameters, so Spark's grids have them."""
    frame = local.createDataFrame(table[["a", "c", "kind"]]).coalesce(2)
    made = Classifier(inputCols=["a", "c"], labelCol="kind", epochs=1, batch=64, numWorkers=2)
    grid = ParamGridBuilder().addGrid(made.lr, [1e-6, 0.05]).build()
    judge = MulticlassClassificationEvaluator(labelCol="kind", metricName="accuracy")
    found = CrossValidator(estimator=made, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=1).fit(frame)
    assert found.avgMetrics[1] > found.avgMetrics[0] and found.bestModel.native.recipe["lr"] == pytest.approx(0.05)


def test_errors(local, table):
    frame = local.createDataFrame(table).coalesce(2)
    with pytest.raises(quern.UsageError, match="a label of size is not a class"):
        Classifier(inputCols=["a"], labelCol="size", epochs=1).fit(frame)
    with pytest.raises(quern.UsageError, match='unknown loss "nix"'):
        Classifier(inputCols=["a"], labelCol="sick", loss="nix").fit(frame)
    with pytest.raises(quern.ClusterError, match=r"local\[4\]: the cluster has fewer cores than numWorkers"):
        Classifier(inputCols=["a"], labelCol="sick", numWorkers=9).fit(frame)
    with pytest.raises(TypeError, match="no option 'epoch'; did you mean 'epochs'"):
        Classifier(epoch=1)
    with pytest.raises(quern.UsageError, match="the column c is string"):
        Classifier(featuresCol="c", labelCol="sick").fit(frame)


# ------------------------------------------------------------------------------------- deaths

def parents():
    """Of each process its parent."""
    known = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has ended
    return known


def ranks():
    """The processes of ranks below this one, each with its worker."""
    known, found = parents(), []
    for process in known:
        above = known[process]
        while above > 1 and above != os.getpid():
            above = known.get(above, 0)
        try:
            if above == os.getpid() and b"_rank.main" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append((process, known[process]))
        except OSError:
            pass
    return sorted(found)


def killed(folder, victim):
    """Kills a rank (0) or its worker (1) after the first checkpoint. Returns a thread and what it killed."""
    done, over = [], threading.Event()

    def wait():
        while not over.wait(0.01):
            if list(folder.glob("checkpoint-*")):
                now = ranks()
                if now:
                    os.kill(now[-1][victim], signal.SIGKILL)
                    done.append(now[-1])
                    return

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, over, done


@pytest.fixture(scope="module")
def cluster():
    if SparkSession.getActiveSession():
        SparkSession.getActiveSession().stop()
    made = session("local-cluster[2,1,1024]")
    yield made
    made.stop()


@pytest.mark.parametrize("victim", [0, 1])
def test_killed(cluster, table, tmp_path, victim):
    """The others go on without a rank, whose rows they read. Without a worker Spark starts the stage again,
    and it continues from the checkpoint."""
    frame = cluster.createDataFrame(table).coalesce(2).localCheckpoint()
    whole = frame.toPandas()
    for size in (1, 4, 16):
        how = {**HOW, "epochs": 60 * size, "batch": 8}
        folder = tmp_path / str(size)
        thread, over, done = killed(folder, victim)
        try:
            made = Classifier(inputCols=ITEMS, labelCol="sick", checkpoint=str(folder), checkpoint_every=20, numWorkers=2,
                              folder=str(tmp_path), **how).fit(frame)
        finally:
            over.set()
            thread.join()
        if done:
            break
    assert done and made.native.digest == alone(whole[[*ITEMS, "sick"]], label="sick", **how).digest
    assert (made.report.resumed_from > 0) == (victim == 1)
    assert not list(tmp_path.glob("quern-part-*")) or victim == 1
