"""Dask with several worker processes: the bytes of one process, a worker that dies, and one that comes."""

import os
import shutil
import signal
import subprocess

import dask.array
import dask.dataframe
import numpy as np
import pandas
import pytest
from distributed import Client, LocalCluster, wait
from engine_hosts import Hosts

import quern
import quern.dask

OPTIONS = dict(label="kind", model="dense 8 relu; dense 3 softmax", batch=64, epochs=3, missing="mean", valid=0.1)


@pytest.fixture(scope="module")
def frame():
    draw, rows = np.random.default_rng(1), 2500
    made = pandas.DataFrame({"a": draw.normal(size=rows), "b": draw.integers(0, 9, rows), "c": draw.choice(["x", "y", "z"], rows)})
    made["kind"] = (made["a"] > 0).astype(int) + (made["c"] == "x")
    made["real"] = made["a"] * made["b"] + 0.5
    made.loc[7, "a"] = np.nan
    return made


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def alone(frame):
    return quern.train(frame, progress=False, threads=1, **OPTIONS)


def parted(frame, pieces=5):
    return dask.dataframe.from_pandas(frame, npartitions=pieces)


def test_a_frame(client, frame, alone):
    epochs = []
    made = quern.dask.train(client, parted(frame), on_epoch=epochs.append, **OPTIONS)
    assert made.digest == alone.digest
    assert [repr(epoch.train) for epoch in epochs] == [repr(epoch.train) for epoch in alone.history]
    found = quern.dask.predict(made, parted(frame, 3)).compute()
    assert found.index.equals(frame.index) and (found == alone.predict(frame)).all()
    outputs = quern.dask.predict(made, parted(frame, 3), outputs=True).compute()
    assert np.array_equal(outputs, alone.predict(frame, outputs=True))


def test_no_file_is_left(client):
    left = client.run(lambda dask_worker: [name for name in os.listdir(dask_worker.local_directory) if "quern" in name])
    assert left and not any(left.values())


def test_arrays_and_estimators(client, frame):
    table = frame.drop(columns=["kind", "real"])
    values, kinds = table[["a", "b"]].fillna(0).to_numpy(), frame["kind"].to_numpy()
    pieces = dask.array.from_array(values, chunks=(700, 1)), dask.array.from_array(kinds, chunks=700)
    few = dict(model="dense 6 relu; dense 3 softmax", epochs=2, batch=64)
    assert quern.dask.train(client, *pieces, **few).digest == quern.train(values, kinds, progress=False, **few).digest

    names = np.array(["no", "maybe", "yes"])[kinds]
    one = quern.Classifier(epochs=2, missing="mean").fit(table, names)
    made = quern.dask.Classifier(epochs=2, missing="mean")
    assert made.fit(parted(table), parted(pandas.Series(names))) is made
    assert made.model_.digest == one.model_.digest and made.classes_.tolist() == ["maybe", "no", "yes"]
    assert made.predict(parted(table)).compute().tolist() == one.predict(table).tolist()
    assert np.array_equal(made.predict_proba(parted(table)).compute(), one.predict_proba(table))
    assert made.score(parted(table), parted(pandas.Series(names))) == one.score(table, names)

    one = quern.Regressor(epochs=2).fit(values, frame["real"])
    made = quern.dask.Regressor(epochs=2).fit(pieces[0], dask.array.from_array(frame["real"].to_numpy(), chunks=700))
    assert made.model_.digest == one.model_.digest
    assert np.array_equal(made.predict(pieces[0]).compute(), one.predict(values))


def test_errors(client, frame):
    with pytest.raises(quern.InputError, match='there is no label column "nothing"'):
        quern.dask.train(client, parted(frame), label="nothing")
    with pytest.raises(quern.UsageError, match="tcp://nowhere is not a worker"):
        quern.dask.train(client, parted(frame), workers=["tcp://nowhere"], **OPTIONS)
    with pytest.raises(quern.UsageError, match="data cannot be DataFrame"):
        quern.dask.train(client, frame, **OPTIONS)
    with pytest.raises(ZeroDivisionError):
        quern.dask.train(client, parted(frame), on_epoch=lambda _: 1 / 0, **OPTIONS)


def test_a_worker_that_comes(client, cluster, frame, alone):
    """It has no partitions and computes nevertheless."""
    held = parted(frame).persist()
    wait(held)
    cluster.scale(3)
    client.wait_for_workers(3)
    assert quern.dask.train(client, held, **OPTIONS).digest == alone.digest
    assert told(client, "ranks")[-3:] == [3, 3, 3]
    assert {event["rank"] for _, event in client.get_events(quern.dask.TOPIC) if "epoch" in event} == {0}  # one tells of all


def told(client, word):
    """A number of each event of an epoch."""
    return [event[word] for _, event in client.get_events(quern.dask.TOPIC) if "epoch" in event]


def rank_of(worker):
    """The process of the rank of that worker."""
    lines = subprocess.run(["ps", "-wwo", "pid,args", "--ppid", str(worker)], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0]) for line in lines.splitlines() if "_rank.main" in line)


@pytest.mark.parametrize("what", ["rank", "worker"])
def test_a_new_worker_is_let_in(client, frame, tmp_path, monkeypatch, what):
    """The rank of a worker dies, or the worker with it: a new process joins those that go on."""
    class Enough(Exception):
        pass

    client.wait_for_workers(2)
    there = client.run(os.getpid)
    heard, notes, dealt, deal = [], [], [], quern._engine.contiguous
    monkeypatch.setattr(quern._engine, "contiguous", lambda *given: dealt.append(deal(*given)) or dealt[-1])

    def follow(epoch):
        heard.append(epoch.epoch)
        if len(heard) == 2:
            victim = there[dealt[0][-1][0]]  # not rank 0
            os.kill(rank_of(victim) if what == "rank" else victim, signal.SIGKILL)
        elif "has joined" in "".join(notes):
            raise Enough

    slow = {**OPTIONS, "model": "dense 256 relu; dense 256 relu; dense 3 softmax", "epochs": 10**5}
    with pytest.raises(Enough):
        quern.dask.train(client, parted(frame), folder=tmp_path, on_epoch=follow, on_note=notes.append, **slow)
    assert heard == list(range(1, len(heard) + 1)) and len(dealt) == 1


@pytest.mark.parametrize("what", ["file stays", "file goes", "copied", "all"])
def test_a_worker_that_dies(client, cluster, frame, tmp_path, monkeypatch, what):
    """Others read its file, or have a copy of its rows. Otherwise all begin again from the checkpoint, on the
    workers that Dask has started instead."""
    options = {**OPTIONS, "epochs": 12}
    if what == "copied":  # each has 8 MiB, which the other one cannot keep beside its own
        options.update(copies=2, part_cache=4)
        more = np.random.default_rng(2).normal(size=(len(frame), 1600)).astype(np.float32)
        frame = frame.join(pandas.DataFrame(more).add_prefix("more_"))
    else:
        options.update(checkpoint=str(tmp_path / "state"), checkpoint_every=1)
    client.wait_for_workers(2)
    there = client.run(lambda dask_worker: (os.getpid(), dask_worker.local_directory))
    heard, attempts, once = [], [], quern.dask._once
    monkeypatch.setattr(quern.dask, "_once", lambda *given: attempts.append(1) or once(*given))

    def kill(epoch):
        heard.append(epoch.epoch)
        if len(heard) == 2:
            for worker in sorted(there)[0 if what == "all" else -1:]:
                process, folder = there[worker]
                if what != "file stays":
                    shutil.rmtree(folder)
                os.kill(process, signal.SIGKILL)

    before = len(told(client, "epoch"))
    made = quern.dask.train(client, parted(frame).persist(), on_epoch=kill, **options)
    alone = {word: value for word, value in options.items() if word not in ("copies", "part_cache", "checkpoint", "checkpoint_every")}
    assert made.digest == quern.train(frame, progress=False, threads=1, **alone).digest
    assert heard == list(range(1, 13))
    if what == "copied":
        assert len(attempts) == 1
    if what == "all":  # the second attempt does not begin with the first epoch
        assert len(attempts) == 2 and made.report.resumed_from > 0 and told(client, "epoch")[before:].count(1) == 1


DRIVER = """
import dask.dataframe, pandas, quern._engine, quern.dask
quern._engine.GRACE = 1
from distributed import Client
with Client("10.77.0.1:8786") as client:
    client.wait_for_workers(2)
    rows = dask.dataframe.from_pandas(pandas.read_pickle("{rows}"), npartitions=5).persist()
    made = quern.dask.train(client, rows, on_epoch=lambda epoch: print(epoch.epoch, flush=True), copies=2, **{options})
    print(made.digest, flush=True)
"""


def test_two_hosts(frame, tmp_path):
    """The power of one fails in the middle. The other one has a copy of its rows."""
    rows, options = tmp_path / "rows", {**OPTIONS, "epochs": 12}
    frame.to_pickle(rows)
    with Hosts(2) as net:
        net.start(0, "dask", "scheduler", "--host", net.addresses[0], "--no-dashboard",
                  DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="60s")
        for i in range(2):
            net.start(i, "dask", "worker", f"{net.addresses[0]}:8786", "--host", net.addresses[i], "--no-dashboard",
                      "--nthreads", "1", "--memory-limit", "0")
        driver = net.start(0, "python", "-c", DRIVER.format(rows=rows, options=options))
        digest = net.last_line(driver, 2, lambda: net.lose(1))
    assert digest == quern.train(frame, progress=False, threads=1, **options).digest
