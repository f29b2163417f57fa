"""Spark in one process and with executors: the bytes of one process, what is killed, and an executor that comes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pyspark  # noqa: E402
import quern  # noqa: E402
from pyspark.ml import Pipeline, PipelineModel  # noqa: E402
from pyspark.ml.evaluation import MulticlassClassificationEvaluator  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from engine_hosts import Hosts  # noqa: E402
from quern.spark import Classifier, ClassifierModel, Regressor, RegressorModel  # noqa: E402

ITEMS = ["a", "b", "c", "day"]
HOW = {"epochs": 3, "missing": "mean", "seed": 5}
# Workers of Spark find the package where this process does.
PLACE = {"PYTHONPATH": os.pathsep.join(sys.path)}
CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


def session(master, more=None):
    made = (SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.executor.memory", "600m").config("spark.locality.wait", "0").config(map=more or {}).getOrCreate())
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
    """The processes of ranks below this one, each with those above it: its task, a daemon, its executor."""
    known, found = parents(), []
    for process in known:
        above = known[process]
        while above > 1 and above != os.getpid():
            above = known.get(above, 0)
        try:
            if above == os.getpid() and b"_rank.main" in Path(f"/proc/{process}/cmdline").read_bytes():
                chain = [process]
                while len(chain) < 4:
                    chain.append(known[chain[-1]])
                found.append(chain)
        except OSError:
            pass
    return sorted(found)


def killed(folder, victim, before):
    """Kills a rank (0), its task (1) or its executor (3) after the first checkpoint. Returns a thread and what it
    killed. `before` is called just before."""
    done, over = [], threading.Event()

    def wait():
        while not over.wait(0.01):
            if list(folder.glob("checkpoint-*")):
                now = ranks()
                if now:
                    before()
                    os.kill(now[-1][victim], signal.SIGKILL)
                    done.append(now[-1])
                    return

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, over, done


class Cluster:
    """A master of Spark and workers, each with one core and one GPU for one executor. No machine has as many GPUs
    as the address says, so these trainings name the CPU."""

    HERE = {"spark.executor.resource.gpu.amount": "1", "spark.task.resource.gpu.amount": "1"}

    def __init__(self, folder):
        self.folder, self.programs = folder, []
        (folder / "gpu.json").write_text(json.dumps([{"id": {"componentName": "spark.worker", "resourceName": "gpu"}, "addresses": ["77"]}]))
        self.environment = {**os.environ, **PLACE, "SPARK_WORKER_OPTS": f"-Dspark.worker.resource.gpu.amount=1 "
                            f"-Dspark.worker.resourcesFile={folder}/gpu.json"}
        master = self._start("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.address = next(word for line in master.stderr for word in line.split() if word.startswith("spark://"))

    def _start(self, kind, *words):
        master = kind == "master.Master"  # it logs its address, and then a line now and then
        made = subprocess.Popen([CLASS, f"org.apache.spark.deploy.{kind}", *words],
                                stderr=subprocess.PIPE if master else subprocess.DEVNULL, text=True, cwd=self.folder, env=self.environment)
        self.programs.append(made)
        return made

    def add(self):
        """Starts a worker."""
        self._start("worker.Worker", self.address, "--cores", "1", "--memory", "1g", "--host", "127.0.0.1",
                    "--webui-port", "0", "--work-dir", str(self.folder / "work"))

    def close(self):
        for program in self.programs:
            program.kill()
            program.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if SparkSession.getActiveSession():
        SparkSession.getActiveSession().stop()
    made = Cluster(tmp_path_factory.mktemp("spark"))
    made.add()
    made.session = session(made.address, Cluster.HERE)
    yield made
    made.session.stop()
    made.close()


def test_an_executor_that_comes(cluster, table):
    """Two tasks need two executors. Spark waits for the one of the worker that is added."""
    frame = cluster.session.createDataFrame(table).coalesce(2).localCheckpoint()
    one = alone(frame.toPandas()[[*ITEMS, "sick"]], label="sick", **HOW)
    cluster.add()
    made = Classifier(inputCols=ITEMS, labelCol="sick", numWorkers=2, devices="cpu", **HOW).fit(frame)
    assert made.native.digest == one.digest
    assert cluster.session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() == 3  # with the driver


def test_gpus_of_tasks(cluster, table):
    """A rank uses the GPU that Spark assigns to its task."""
    frame = cluster.session.createDataFrame(table).coalesce(1)
    with pytest.raises(quern.QuernError, match="cuda:77"):
        Classifier(inputCols=ITEMS, labelCol="sick", numWorkers=1, **HOW).fit(frame)


@pytest.mark.parametrize("victim", ["rank", "copied rank", "task", "executor"])
def test_killed(cluster, table, tmp_path, victim):
    """The others go on without a rank, whose rows they read or have. Without a task or an executor Spark starts
    the stage again, and it continues from the checkpoint."""
    goes_on = victim.endswith("rank")

    def lose():
        for part in tmp_path.glob("quern-part-*") if victim == "copied rank" else ():
            shutil.rmtree(part)

    cluster.session.sparkContext.setCheckpointDir(str(tmp_path / "rows"))  # executors lose what they hold
    frame = cluster.session.createDataFrame(table).coalesce(2).checkpoint()
    whole = frame.toPandas()
    for size in (1, 4, 16):
        how = {**HOW, "epochs": 60 * size, "batch": 8}
        folder = tmp_path / str(size)
        thread, over, done = killed(folder, ["rank", "task", "", "executor"].index(victim.split()[-1]), lose)
        try:
            made = Classifier(inputCols=ITEMS, labelCol="sick", checkpoint=str(folder), checkpoint_every=20, numWorkers=2,
                              folder=str(tmp_path), copies=1 + (victim == "copied rank"), devices="cpu", **how).fit(frame)
        finally:
            over.set()
            thread.join()
        if done:
            break
    assert done and made.native.digest == alone(whole[[*ITEMS, "sick"]], label="sick", **how).digest
    assert (made.report.resumed_from > 0) == (not goes_on)
    assert not list(tmp_path.glob("quern-part-*")) or not goes_on


DRIVER = """
import pandas, quern
from pyspark.sql import SparkSession
from quern.spark import Classifier
spark = SparkSession.builder.master("spark://10.77.0.1:7077").config(map={{
    "spark.driver.host": "10.77.0.1", "spark.ui.enabled": "false", "spark.executor.memory": "600m",
    "spark.network.timeout": "30s", "spark.network.timeoutInterval": "5s", "spark.executor.heartbeatInterval": "2s"}}).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frame = spark.createDataFrame(pandas.read_pickle("{rows}")).coalesce(2)
one = quern.train(frame.toPandas(), progress=False, label="sick", **{how})
made = Classifier(inputCols={items}, labelCol="sick", numWorkers=2, checkpoint="{state}", checkpoint_every=500, folder="{own}",
                  **{how}).fit(frame)
print(made.native.digest == one.digest, made.report.resumed_from > 0, flush=True)
"""


def test_hosts(table, tmp_path):
    """The power of one of two fails in the middle, and a third one comes."""
    rows, state = tmp_path / "rows", tmp_path / "state"
    table[[*ITEMS, "sick"]].to_pickle(rows)
    with Hosts(3) as net:
        def start(i, kind, *words):
            return net.start(i, CLASS, f"org.apache.spark.deploy.{kind}", *words, "--host", net.addresses[i], "--webui-port", "0",
                             SPARK_LOCAL_IP=net.addresses[i], **PLACE)

        def add(i):
            start(i, "worker.Worker", "spark://10.77.0.1:7077", "--cores", "1", "--memory", "1g", "--work-dir", str(net.own))

        start(0, "master.Master", "--port", "7077")
        add(0)
        add(1)
        driver = net.start(0, "python", "-c", DRIVER.format(rows=rows, state=state, own=net.own, items=ITEMS,
                                                            how={**HOW, "epochs": 200, "batch": 8}), SPARK_LOCAL_IP=net.addresses[0])
        while not list(state.glob("checkpoint-*")):
            assert driver.poll() is None
            time.sleep(0.05)
        net.lose(1)
        add(2)
        assert "True True" in driver.stdout.read().splitlines()
