"""`quern runs export`: the record of a run as TensorBoard and MLflow have it. The event file is read by
the definition of TFRecords and by tests/onnx_reader.py, which reads protocol buffers."""

import csv
import datetime
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from onnx_reader import fields, of


def run(quern, *words, **more):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60, **more)


@pytest.fixture(scope="module")
def record(quern, tmp_path_factory):
    """The folder of a run of three epochs."""
    folder = tmp_path_factory.mktemp("runs")
    run(quern, "data", "synth", "digits", "--items", 200, "-o", folder / "d.csv")
    done = run(quern, "train", "--data", folder / "d.csv", "--valid", 0.2, "--model", "dense 8 relu; dense 10 softmax",
               "--epochs", 3, "--threads", 1, "--devices", "cpu", "--run-dir", folder / "one run", "--quiet", "-o",
               folder / "m")
    assert done.returncode == 0, done.stderr
    return folder / "one run"


def crc32c(content):
    crc = 0xffffffff
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def records(content):
    """The payloads of a file of TFRecords, whose checksums must be right."""
    assert crc32c(b"123456789") == 0xe3069283  # the check value of the polynomial
    while content:
        size = int.from_bytes(content[:8], "little")
        for part, given in ((content[:8], content[8:12]), (content[12:12 + size], content[12 + size:16 + size])):
            crc = crc32c(part)
            assert int.from_bytes(given, "little") == ((crc >> 15 | crc << 17) + 0xa282ead8) % 2**32
        yield content[12:12 + size]
        content = content[16 + size:]


def started(record):
    when = json.loads((record / "run.json").read_text())["started"]
    return datetime.datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()


def test_scalars_of_tensorboard(quern, record, tmp_path):
    done = run(quern, "runs", "export", record, "--format", "tensorboard", "-o", tmp_path / "logs" / "a")
    assert done.returncode == 0 and done.stdout == f"{record} is in {tmp_path}/logs/a for TensorBoard\n", done.stderr
    file, = (tmp_path / "logs" / "a").iterdir()
    assert file.name == f"events.out.tfevents.{started(record):.0f}.quern"
    first, *events = [fields(payload) for payload in records(file.read_bytes())]
    assert of(first, 3) == [b"brain.Event:2"] and struct.unpack("<d", of(first, 1)[0])[0] == started(record)
    rows = list(csv.DictReader((record / "metrics.csv").open()))
    assert [of(e, 2)[0] for e in events] == [1, 2, 3]
    time = started(record)
    for event, row in zip(events, rows, strict=True):
        time += float(row["seconds"])
        assert abs(struct.unpack("<d", of(event, 1)[0])[0] - time) < 1e-5
        scalars = [fields(value) for value in of(fields(of(event, 5)[0]), 1)]
        assert {of(s, 1)[0].decode(): struct.unpack("<f", of(s, 2)[0])[0] for s in scalars} == pytest.approx({
            "loss/train": float(row["train_loss"]), "loss/valid": float(row["valid_loss"]),
            "accuracy/train": float(row["train_accuracy"]), "accuracy/valid": float(row["valid_accuracy"]),
            "learning_rate": 0.1, "seconds": float(row["seconds"]), "items_per_second": float(row["items_per_second"])})


def test_files_of_mlflow(quern, record, tmp_path):
    store = tmp_path / "ml runs"
    words = ["runs", "export", record, "--format", "mlflow", "-o", store, "--experiment", "it's \"x\""]
    for _ in range(2):  # the second time replaces
        assert run(quern, *words).returncode == 0
    experiment, = store.iterdir()
    assert len(experiment.name) == 18 and experiment.name.isdigit()
    assert 'name: "it\'s \\"x\\""\n' in (experiment / "meta.yaml").read_text()
    folder, = [f for f in experiment.iterdir() if f.is_dir()]
    about = dict(line.split(": ", 1) for line in (folder / "meta.yaml").read_text().splitlines())
    assert about["run_name"] == '"one run"' and about["status"] == "3" and about["run_id"] == f'"{folder.name}"'
    assert about["artifact_uri"] == json.dumps((folder / "artifacts").as_uri())
    assert int(about["start_time"]) == started(record) * 1000 <= int(about["end_time"])
    recipe = json.loads((record / "run.json").read_text())["recipe"]
    params = {f.name: f.read_text() for f in (folder / "params").iterdir()}
    assert params.keys() == recipe.keys() and params["model"] == recipe["model"] and float(params["lr"]) == 0.1
    rows = list(csv.DictReader((record / "metrics.csv").open()))
    lines = [line.split() for line in (folder / "metrics" / "valid_loss").read_text().splitlines()]
    assert [(float(value), int(step)) for _, value, step in lines] == \
        [(pytest.approx(float(row["valid_loss"])), k) for k, row in enumerate(rows, 1)]
    assert sorted(f.name for f in (folder / "metrics").iterdir()) == [
        "items_per_second", "learning_rate", "seconds", "train_accuracy", "train_loss", "valid_accuracy", "valid_loss"]
    assert (folder / "tags" / "mlflow.runName").read_text() == "one run"
    assert (folder / "artifacts" / "run.json").read_bytes() == (record / "run.json").read_bytes()
    run(quern, *words[:-2], "--name", "other")
    assert len(list(store.iterdir())) == 2


HEADER = "epoch,seconds,items_per_second,rate,train_loss,train_accuracy\n"
BROKEN = {"empty": ("{}", HEADER, "when the run started"), "list": ("[]", HEADER, "not a record"),
          "text": ("hello", HEADER, "not a record"), "time": ('{"started": "yesterday"}', HEADER, "when the run started"),
          "header": (None, "a,b\n1,2\n", "line 1"), "cell": (None, HEADER + "1,x,1,1,1,1\n", "line 2"),
          "few": (None, HEADER + "1,1,1,1,1,1\n2,1\n", "line 3"), "wide": (None, "epoch,seconds," + "x," * 99 + "y\n", "line 1"),
          "zero": (None, HEADER + "1,1,1\0,1,1,1\n", "not the metrics"), "negative": (None, HEADER + "-1,1,1,1,1,1\n", "line 2")}


@pytest.mark.parametrize("how", BROKEN)
def test_damaged_records(quern, record, tmp_path, how):
    about, metrics, said = BROKEN[how]
    shutil.copytree(record, tmp_path / "r")
    if about is not None:
        (tmp_path / "r" / "run.json").write_text(about)
    else:
        (tmp_path / "r" / "metrics.csv").write_text(metrics)
    for form in ("tensorboard", "mlflow"):
        done = run(quern, "runs", "export", tmp_path / "r", "--format", form, "-o", tmp_path / "out")
        assert done.returncode == 1 and said in done.stderr and "--run-dir" in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_cut_and_odd_records(quern, record, tmp_path):
    """The last line of a killed run has no end; names in a recipe may be anything."""
    shutil.copytree(record, tmp_path / "r")
    whole = (record / "metrics.csv").read_text()
    (tmp_path / "r" / "metrics.csv").write_text(whole[:-5])
    odd = {"../../x": "escape", "model": "a\nb", "table": {"x": 1}, "": "no name"}
    (tmp_path / "r" / "run.json").write_text(json.dumps({"state": "running", "started": "2026-01-01T00:00:00Z",
                                                         "recipe": odd}))
    assert run(quern, "runs", "export", tmp_path / "r", "--format", "mlflow", "-o", tmp_path / "out").returncode == 0
    assert [f.name for f in Path(tmp_path / "out").glob("*/*/params/*")] == ["model"]
    meta, = (tmp_path / "out").glob("*/*/meta.yaml")
    assert "end_time: null\n" in meta.read_text() and "status: 1\n" in meta.read_text()
    assert len(next((tmp_path / "out").glob("*/*/metrics/train_loss")).read_text().splitlines()) == 2
    for words, said in ((["--format", "wandb", "-o", "x"], "there are: tensorboard, mlflow"), (["-o", "x"], "--format"),
                        (["--format", "mlflow"], "-o mlruns"), (["--format", "tensorboard", "--name", "a", "-o", "x"], "folder"),
                        (["--format", "mlflow", "-o", record / "run.json"], "run.json")):
        done = run(quern, "runs", "export", record, *words, cwd=tmp_path)
        assert done.returncode in (1, 2) and said in done.stderr, done.stderr
    done = run(quern, "runs", "export", tmp_path, "--format", "mlflow", "-o", tmp_path / "o")
    assert done.returncode == 1 and "run.json" in done.stderr and "--run-dir" in done.stderr
    assert not os.path.exists(tmp_path / "o")
