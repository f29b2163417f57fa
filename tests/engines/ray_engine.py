"""Ray on this machine: the bytes of one process, an actor that dies, Ray Train and Ray Tune."""

import os
import signal
import subprocess

import numpy as np
import pandas
import pytest
import ray
import ray.data

import quern
import quern.ray

OPTIONS = dict(label="kind", model="dense 8 relu; dense 3 softmax", batch=64, epochs=3, valid=0.1)


@pytest.fixture(scope="module")
def frame():
    draw, rows = np.random.default_rng(1), 2500
    made = pandas.DataFrame({"a": draw.normal(size=rows), "b": draw.integers(0, 9, rows), "c": draw.choice(["x", "y", "z"], rows)})
    made["kind"] = (made["a"] > 0).astype(int) + (made["c"] == "x")
    return made


@pytest.fixture(scope="module")
def dataset(frame):
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(num_cpus=3, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray.data.from_pandas([frame[:900], frame[900:1000], frame[1000:]])
    ray.shutdown()


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


def test_an_actor_that_dies(dataset, frame, tmp_path):
    """Its file is gone: the others go on with what they have fetched, or all begin again from the checkpoint."""
    more = {**OPTIONS, "epochs": 12, "checkpoint": str(tmp_path / "state"), "checkpoint_every": 1}
    heard = []

    def kill(epoch):
        heard.append(epoch.epoch)
        if len(heard) == 2:
            lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
            actors = [int(line.split()[0]) for line in lines if "ray::_Worker" in line]
            for folder in tmp_path.glob("quern-part-*"):
                (folder / "part.arrow").unlink()
            os.kill(actors[-1], signal.SIGKILL)

    made = quern.ray.train(dataset, ranks=2, folder=tmp_path, on_epoch=kill, **more)
    assert heard == list(range(1, 13))
    assert made.digest == quern.train(frame, progress=False, threads=1, **{**OPTIONS, "epochs": 12}).digest


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
