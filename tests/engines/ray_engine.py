"""Ray on this machine: the bytes of one process, actors and nodes that come and die, Ray Train and Ray Tune."""

import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import numpy as np
import pandas
import pytest
import ray
import ray.data
from ray.cluster_utils import Cluster

import quern
import quern._engine
import quern.ray

OPTIONS = dict(label="kind", model="dense 8 relu; dense 3 softmax", batch=64, epochs=3, valid=0.1)


@pytest.fixture(scope="module")
def frame():
    draw, rows = np.random.default_rng(1), 2500
    made = pandas.DataFrame({"a": draw.normal(size=rows), "b": draw.integers(0, 9, rows), "c": draw.choice(["x", "y", "z"], rows)})
    made["kind"] = (made["a"] > 0).astype(int) + (made["c"] == "x")
    return made


STORE = 100 << 20
PORT = int(quern._engine.address("127.0.0.1").rpartition(":")[2])  # of metrics


@pytest.fixture(scope="module")
def cluster():
    """A node with GPUs of which Ray is told. Ray gives its workers the lowest priority but four; they wait long on
    a machine that does other work."""
    os.environ.update(RAY_AUTH_MODE="disabled", RAY_worker_niceness="0")
    made = Cluster(initialize_head=True, head_node_args={
        "num_cpus": 3, "num_gpus": 2, "include_dashboard": False, "object_store_memory": STORE,
        "metrics_export_port": PORT, "_system_config": {"metrics_report_interval_ms": 500}})
    ray.init(address=made.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def dataset(cluster, frame):
    return ray.data.from_pandas([frame[:900], frame[900:1000], frame[1000:]])


@pytest.fixture
def attempts(monkeypatch):
    """A list with an element for each attempt of a training."""
    made, once = [], quern.ray._once
    monkeypatch.setattr(quern.ray, "_once", lambda *given: made.append(1) or once(*given))
    return made


def actors():
    """The processes of the ranks' actors, each with that of its rank."""
    lines = subprocess.run(["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    processes = [line.split(None, 2) for line in lines]
    ranks = {parent: int(process) for process, parent, words in processes if "_rank.main" in words}
    return [(int(process), ranks.get(process)) for process, _, words in processes if words.startswith("ray::_Worker")]


@pytest.fixture(scope="module")
def alone(frame):
    return quern.train(frame, progress=False, threads=1, **OPTIONS)


def test_training_and_prediction(dataset, frame, alone):
    epochs = []
    made = quern.ray.train(dataset, ranks=2, on_epoch=epochs.append, **OPTIONS)
    assert made.digest == alone.digest
    assert [repr(epoch.train) for epoch in epochs] == [repr(epoch.train) for epoch in alone.history]
    found = quern.ray.predict(made, dataset).to_pandas()
    assert list(found) == [*frame, "prediction"]
    assert (found.sort_values(["a", "b"])["prediction"].to_numpy() ==
            frame.assign(p=alone.predict(frame)).sort_values(["a", "b"])["p"].to_numpy()).all()
    with pytest.raises(quern.InputError, match='there is no label column "nothing"'):
        quern.ray.train(dataset, ranks=2, label="nothing")
    with pytest.raises(quern.ClusterError, match="no room for 2 ranks of 64 CPU"):
        quern.ray.train(dataset, ranks=2, cpus=64, timeout=0.1, **OPTIONS)


@pytest.mark.parametrize("who", ["one", "all"])
def test_an_actor_that_dies(dataset, frame, tmp_path, attempts, who):
    """Its file is gone: the others go on with what they have fetched, or all begin again from the checkpoint. That
    is what happens when all die: new actors take their places."""
    more = {**OPTIONS, "epochs": 12, "checkpoint": str(tmp_path / "state"), "checkpoint_every": 1}
    heard = []

    def kill(epoch):
        heard.append(epoch.epoch)
        if len(heard) == 2:
            for folder in tmp_path.glob("quern-part-*"):
                (folder / "part.arrow").unlink()
            for actor, _ in actors()[0 if who == "all" else -1:]:
                os.kill(actor, signal.SIGKILL)

    made = quern.ray.train(dataset, ranks=2, folder=tmp_path, on_epoch=kill, **more)
    assert heard == list(range(1, 13))
    assert made.digest == quern.train(frame, progress=False, threads=1, **{**OPTIONS, "epochs": 12}).digest
    if who == "all":
        assert attempts == [1, 1] and made.report.resumed_from > 0


@pytest.mark.parametrize("what", ["rank", "actor"])
def test_a_new_actor_is_let_in(dataset, tmp_path, attempts, what):
    """The rank of an actor dies, or the actor with it: a new process joins those that go on."""
    class Enough(Exception):
        pass

    heard, killed, notes = [], [], []

    def follow(epoch):
        heard.append(epoch.epoch)
        if not killed:
            killed.extend(actors())
            os.kill(killed[-1][what == "rank"], signal.SIGKILL)
        elif "has joined" in "".join(notes):
            assert actors()[0] == killed[0]
            raise Enough

    slow = {**OPTIONS, "model": "dense 256 relu; dense 256 relu; dense 3 softmax", "epochs": 10**5}
    with pytest.raises(Enough):
        quern.ray.train(dataset, ranks=2, folder=tmp_path, on_epoch=follow, on_note=notes.append, **slow)
    assert heard == list(range(1, len(heard) + 1)) and attempts == [1]


def test_nodes(cluster, dataset, frame, attempts):
    """A node that is added takes a rank. When it dies, the others go on with a copy of its rows."""
    more = {**OPTIONS, "epochs": 12, "ranks": 2, "strategy": "STRICT_SPREAD"}
    with pytest.raises(quern.ClusterError, match="no room for 2 ranks of 1 CPU"):
        quern.ray.train(dataset, timeout=0.1, **more)
    node, heard = cluster.add_node(num_cpus=1, object_store_memory=STORE), []

    def lose(epoch):
        heard.append(epoch.epoch)
        if len(heard) == 2:
            cluster.remove_node(node, allow_graceful=False)

    made = quern.ray.train(dataset, copies=2, on_epoch=lose, **more)
    assert made.digest == quern.train(frame, progress=False, threads=1, **{**OPTIONS, "epochs": 12}).digest
    assert heard == list(range(1, 13)) and attempts == [1]


def test_gauges_and_gpus(dataset):
    """Ray's page of metrics has the numbers of an epoch. The ranks see the GPUs that Ray gives them."""
    class Enough(Exception):
        pass

    node, found, gpus = ray.util.get_node_ip_address(), [], []

    def look(epoch):
        for _, rank in actors():
            gpus.extend(word for word in Path(f"/proc/{rank}/environ").read_text().split("\0")
                        if word.startswith("CUDA_VISIBLE_DEVICES="))
        while not found:  # Ray writes it now and then, as long as the actor lives
            with urllib.request.urlopen(f"http://{node}:{PORT}/metrics") as answer:
                found.extend(line for line in answer.read().decode().splitlines() if line.startswith("ray_quern_loss{"))
        raise Enough

    with pytest.raises(Enough):
        quern.ray.train(dataset, ranks=2, gpus=1, on_epoch=look, **{**OPTIONS, "epochs": 10**6})
    assert float(found[0].split()[-1]) > 0
    assert sorted(gpus) == ["CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1"]


def test_trainer_and_tune(dataset, frame, alone, tmp_path):
    import ray.train
    import ray.tune

    result = quern.ray.Trainer({"train": dataset}, scaling_config=ray.train.ScalingConfig(num_workers=2),
                               run_config=ray.train.RunConfig(name="a", storage_path=str(tmp_path)), **OPTIONS).fit()
    assert quern.load(os.path.join(result.checkpoint.path, quern.ray.MODEL)).digest == alone.digest
    assert result.metrics["valid_loss"] == alone.history[-1].valid.loss and len(result.metrics_dataframe) == 3

    options = {word: value for word, value in OPTIONS.items() if word != "batch"}
    tuner = ray.tune.Tuner(quern.ray.trainable(frame, **options), param_space={"batch": ray.tune.grid_search([64, 32])},
                           run_config=ray.tune.RunConfig(storage_path=str(tmp_path)))
    best = {found.config["batch"]: found for found in tuner.fit()}[64]
    assert quern.load(os.path.join(best.checkpoint.path, quern.ray.MODEL)).digest == alone.digest
