"""Files that are written to a store: whole or not at all, whatever the network and the store do."""

import io
import json
import os
import signal
import subprocess

import numpy as np
import pytest

import store_server
import webhdfs_server

PART = 8 << 20


@pytest.fixture(scope="module")
def s3():
    with store_server.S3(buckets=["b"], regions={}) as server:
        yield server


@pytest.fixture(autouse=True)
def forget(request):
    if "s3" in request.fixturenames:
        server = request.getfixturevalue("s3")
        server.forget()
        server.buckets["b"].clear()
        server.uploads.clear()


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    """17 MB: three parts."""
    path = tmp_path_factory.mktemp("a") / "a.npy"
    np.save(path, np.arange(2_100_000, dtype="<f8").reshape(-1, 4) % 977)
    return path


def environment(s3, **more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**kept, **s3.environment, "QUERN_STORE_PAUSE_MS": "0", **more}


@pytest.fixture
def write(s3, run_quern):
    def run(*args, **more):
        return run_quern(*args, env=environment(s3, **more.pop("env", {})), **more)
    return run


def test_parts_are_completed_last(s3, write, array, tmp_path):
    """Each request of an upload fails once, in every way; the object is that of a file."""
    write("data", "convert", array, "--unlabelled", "-o", tmp_path / "a.npy")
    s3.forget()
    s3.fault("status", method="POST", query=["uploads"], skip=1, status=503, headers={"Retry-After": "0"})
    s3.fault("swallow", method="PUT", after=100_000)
    s3.fault("lose", method="PUT", skip=1)
    s3.fault("status", method="PUT", skip=3, status=429)
    s3.fault("status", method="POST", query=["uploadId"], status=200,
             body=b"<Error><Code>InternalError</Code></Error>")
    s3.fault("lose", method="POST", query=["uploadId"], skip=1)
    s3.put("b/o/a.npy", b"old")
    write("data", "convert", array, "--unlabelled", "-o", "s3://b/o/a.npy")
    assert s3.get("b/o/a.npy") == (tmp_path / "a.npy").read_bytes()
    parts = s3.requests("PUT")
    assert {len(r.body) for r in parts if r.query["partNumber"] in "12" and r.status} == {PART}
    assert len({r.query["partNumber"] for r in parts}) == 3 and len(parts) > 5
    assert [bool(r.status) for r in s3.requests("POST") if "uploadId" in r.query] == [True, False, True]
    assert not s3.uploads


def test_what_failed_leaves_nothing(s3, write, array):
    s3.put("b/a.npy", b"old")
    s3.fault("status", method="PUT", status=403, skip=1, body=b"<Error><Code>AccessDenied</Code></Error>")
    failed = write("data", "convert", array, "--unlabelled", "-o", "s3://b/a.npy", status=1)
    assert "AccessDenied" in failed.stderr and "s3://b/a.npy" in failed.stderr
    assert s3.SECRET not in failed.stderr and s3.get("b/a.npy") == b"old" and not s3.uploads
    for out, said in (("s3://none/a.npy", "no such bucket"), ("s3://b/folder/", "names a folder"),
                      (f"{s3.address}/b/a.npy", "can only be read")):
        failed = write("data", "convert", array, "--unlabelled", "--format", "npy", "-o", out,
                       status=1)
        assert said in failed.stderr and out in failed.stderr


def test_a_killed_process_leaves_nothing_to_see(s3, quern, array):
    s3.fault("hold", method="PUT")
    process = subprocess.Popen([quern, "data", "convert", array, "--unlabelled", "-o",
                                "s3://b/killed.npy"], env=environment(s3))
    assert s3.held.wait(20)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    s3.release()
    assert s3.get("b/killed.npy") is None and len(s3.uploads) == 1


@pytest.fixture(scope="module")
def small(tmp_path_factory, run_quern):
    path = tmp_path_factory.mktemp("s") / "small.csv"
    run_quern("data", "synth", "digits", "--items", 300, "-o", path)
    return path


def training(small, *more):
    return ["train", "--data", small, "--model", "dense 10 softmax", "--epochs", "3", "--batch", "50",
            "--threads", "1", *(["--checkpoint-every", "6"] if "--checkpoint" in more else []), *more]


def test_a_stalled_request_does_not_hold_an_interruption(s3, quern, small):
    """The lease is looked at before a checkpoint is published; the answer never comes."""
    args = training(small, "--checkpoint", "s3://b/ck/", "-o", "s3://b/m")
    s3.fault("hold", method="GET", key="ck/lock", skip=2, times=99)
    process = subprocess.Popen([quern, *map(str, args)], env={**environment(s3), "QUERN_STORE_STALL": "3000"},
                               stderr=subprocess.PIPE, text=True)
    assert s3.held.wait(60)
    process.send_signal(signal.SIGTERM)
    told = process.communicate(timeout=60)[1]
    assert process.returncode > 0 and "no byte came, and the program is to end" in told


def test_a_killed_training_goes_on_from_a_store(s3, quern, write, small, run_quern, tmp_path):
    """The lock of a process that was killed is taken at once, and the bytes are those of a folder."""
    run_quern(*training(small, "--checkpoint", tmp_path / "ck", "-o", tmp_path / "m"))
    args = training(small, "--checkpoint", "s3://b/ck/", "--run-dir", "s3://b/run/", "-o", "s3://b/m")
    s3.fault("hold", method="PUT", key="000012.safetensors")
    process = subprocess.Popen([quern, *map(str, args)], env=environment(s3), stderr=subprocess.DEVNULL)
    assert s3.held.wait(20)
    process.send_signal(signal.SIGKILL)
    process.wait()
    s3.forget()
    s3.buckets["b"].pop("ck/checkpoint-000000000012.safetensors", None)
    assert s3.get("b/ck/lock") and s3.get("b/m") is None
    s3.release()
    write(*args, "--resume", "--report", "s3://b/r.html")
    assert s3.get("b/m") == (tmp_path / "m").read_bytes()
    assert s3.names() == ["b/ck/checkpoint-000000000012.safetensors", "b/ck/checkpoint-000000000018.safetensors",
                          "b/m", "b/r.html", "b/run/metrics.csv", "b/run/run.json"]
    assert [line[0] for line in s3.get("b/run/metrics.csv").decode().splitlines()[1:]] == list("123")
    assert b'"state": "finished"' in s3.get("b/run/run.json") and b"<svg" in s3.get("b/r.html")
    failed = write(*args, status=2)
    assert "holds checkpoints of an earlier run" in failed.stderr
    failed = write(*args, "--resume", "--runs", "s3://b/runs.db", status=1)
    assert "changes in place" in failed.stderr and "--run-dir" in failed.stderr
    told = write("model", "export", "s3://b/m", "-o", "s3://b/m.onnx", cwd=tmp_path)
    assert told.stdout == "s3://b/m.onnx: ONNX, opset 13\n" and s3.get("b/m.onnx")
    export = ["runs", "export", "s3://b/run/", "-o", "s3://b/e/", "--format"]
    write(*export, "tensorboard", cwd=tmp_path)
    assert "folder of a machine" in write(*export, "mlflow", cwd=tmp_path, status=1).stderr
    assert s3.names()[2].startswith("b/e/events.out.tfevents.") and not list(tmp_path.glob("s3*"))


def test_a_folder_may_end_with_a_slash(s3, write):
    """Its files are those of the folder without one: in a store, a name with two slashes is another."""
    image = pytest.importorskip("PIL.Image")
    for name, value in (("photos", 200), ("masks", 1)):
        picture = io.BytesIO()
        image.new("L", (6, 6), value).save(picture, "PNG")
        s3.put(f"b/{name}/1.png", picture.getvalue())
    masked = ["--masks", "s3://b/masks/", "--test", "s3://b/photos/", "--test-labels", "s3://b/masks/"]
    write("train", "--data", "s3://b/photos/", *masked, "--model", "conv 2 1x1 softmax", "--epochs", "1", "--threads", "1",
          "--predictions", "s3://b/stages/", "-o", "s3://b/m")
    write("predict", "s3://b/m", "s3://b/photos/", "-o", "s3://b/out/")
    assert s3.names() == ["b/m", "b/masks/1.png", "b/out/1.png", "b/photos/1.png", "b/stages/stage1-test/1.png"]


LEASE = "a lease of Quern\nprocess 77\nhost elsewhere\nkernel none\nnonce {:016}\nowner 0\nnumber {}\n"


def lease(number):
    return LEASE.format(8, number).encode()


def test_a_lock_of_another_host(s3, write, small):
    args = training(small, "--checkpoint", "s3://b/ck", "-o", "s3://b/m")
    beat = {"QUERN_STORE_BEAT_MS": "40"}
    # It is written anew while it is waited for: its holder lives.
    s3.put("b/ck/lock", lease(5), age=-3600)
    s3.fault("do", method="GET", key="ck/lock", skip=1, action=lambda: s3.put("b/ck/lock", lease(6), age=-3600))
    failed = write(*args, status=1, env=beat)
    assert "is in use by process 77 on elsewhere" in failed.stderr and s3.get("b/m") is None
    # It is not, or it is old: nobody's.
    for age, beats in ((-3600, {"QUERN_STORE_BEAT_MS": "1"}), (100, {})):
        s3.put("b/ck/lock", lease(5), age=age)
        write(*args, env=beats)
        assert s3.get("b/m") and not s3.get("b/ck/lock")
        s3.buckets["b"].clear()
    s3.put("b/ck/lock", b"my own notes")
    failed = write(*args, status=1)
    assert "not a lease of Quern" in failed.stderr and s3.get("b/ck/lock") == b"my own notes"


def test_who_loses_the_lock_writes_nothing(s3, write, small):
    """The first beat finds another holder, while the process is held between lock and training. It takes
    the lock again when that holder writes it no more."""
    def seize():
        s3.put("b/ck/lock", lease(9))
        s3.release()

    s3.fault("hold", method="GET", query=["list-type"])
    s3.fault("do", method="PUT", key="ck/lock", skip=1, action=seize)
    told = write(*training(small, "--checkpoint", "s3://b/ck", "-o", "s3://b/m"), env={"QUERN_STORE_BEAT_MS": "5"})
    assert "000006.safetensors now belongs to another process" in told.stderr
    assert not s3.requests("PUT", "000006.safetensors") and s3.requests("PUT", "000018.safetensors")


def test_hdfs(run_quern, small, array, tmp_path):
    """Files of HDFS are written under another name and renamed, and read in ranges."""
    with webhdfs_server.WebHDFS(users=["ann"]) as hdfs:
        place, env = f"hdfs://{hdfs.place}/u", {**os.environ, "HADOOP_USER_NAME": "ann", "QUERN_STORE_PAUSE_MS": "0"}
        run_quern(*training(small, "-o", tmp_path / "m"))
        run_quern(*training(small, "--checkpoint", f"{place}/ck", "-o", f"{place}/m"), env=env)
        assert hdfs.get("/u/m") == (tmp_path / "m").read_bytes()
        steps = [f"/u/ck/checkpoint-{step:012}.safetensors" for step in (12, 18)]
        assert hdfs.names() == [*steps, "/u/m"]
        # A part is written, and the answer is lost: it is not added twice. So is the answer to the rename.
        run_quern("data", "convert", array, "--unlabelled", "-o", tmp_path / "a.npy")
        hdfs.put("/u/a.npy", b"old")
        hdfs.fault("lose", method="POST", query=["namenoderpcaddress"])
        hdfs.fault("swallow", method="POST", query=["namenoderpcaddress"], skip=1, after=9)
        hdfs.fault("lose", method="PUT", query=["destination"])
        run_quern("data", "convert", array, "--unlabelled", "-o", f"{place}/a.npy", env=env)
        assert hdfs.get("/u/a.npy") == (tmp_path / "a.npy").read_bytes()
        assert hdfs.names() == ["/u/a.npy", *steps, "/u/m"]
        # Read by a pattern; a connection that is cut is continued.
        hdfs.put("/u/t/1.csv", b"a,b\n" + b"1,2\n" * 5000)
        hdfs.put("/u/t/2.csv", b"a,b\n" + b"3,4\n" * 10)
        hdfs.fault("cut", method="GET", key="1.csv", query=["namenoderpcaddress"], after=1000)
        told = run_quern("data", "info", f"{place}/t/*.csv", "--json", env=env)
        assert json.loads(told.stdout)["items"] == 5010
        failed = run_quern("data", "info", f"{place}/t/1.csv", status=1, env={**env, "HADOOP_USER_NAME": "bob"})
        assert "Permission denied: bob" in failed.stderr and "HADOOP_USER_NAME" in failed.stderr
        failed = run_quern("predict", f"{place}/m", "--data", small, "-o", f"{place}/p.csv", status=1,
                           env={**env, "QUERN_HDFS_TOKEN": "a+secret/word", "HADOOP_USER_NAME": "bob"})
        assert "secret" not in failed.stderr
        assert any(r.query.get("delegation") == "a+secret/word" for r in hdfs.log)
