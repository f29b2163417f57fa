"""The command as a person uses it: help, exit codes, the standing job in small, its streams, the
live bar, and the tutorial as it is written."""

import csv
import fcntl
import gzip
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
import uuid
from pathlib import Path

import pytest

import launch
import python_package
from builds import ROOT

COMMANDS = ["version", "devices", "plan", "data info", "data stats", "data head", "data convert", "data split", "data tokenize", "data synth digits", "train", "predict", "evaluate", "run", "search", "replay",
            "model list", "model show", "model export", "model import", "model merge", "runs export", "help"]
SMALL = ["--model", "dense 24 tanh; dense 10 softmax", "--epochs", "3", "--momentum", "0.9"]
HEX = re.compile(r"\b[0-9a-f]{64}\b")


@pytest.fixture(scope="module")
def digits(run_quern, tmp_path_factory):
    """A folder with the same 600 digits as CSV, IDX and gzipped, and 200 others to test with."""
    d = tmp_path_factory.mktemp("digits")
    for name, items, first in (("train", 600, 0), ("test", 200, 600)):
        some = ["data", "synth", "digits", "--items", items, "--first", first, "--quiet"]
        run_quern(*some, "-o", d / f"{name}.csv")
        run_quern(*some, "-o", d / f"{name}.idx", "--labels", d / f"{name}-labels.idx")
    for name in ("train.csv", "train.idx", "train-labels.idx"):
        (d / f"{name}.gz").write_bytes(gzip.compress((d / name).read_bytes()))
    return d


@pytest.fixture(scope="module")
def trained(run_quern, digits):
    """A model of the small job, and what the training printed."""
    out = digits / "small.safetensors"
    done = run_quern("train", "--data", digits / "train.csv", "--test", digits / "test.csv",
                     *SMALL, "-o", out)
    return out, done


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def events(text):
    """Every line of `text` as JSON; a NaN or an infinity would not be JSON."""
    def refuse(word):
        raise ValueError(f"{word} is not JSON")
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


# ---------------------------------------------------------------- help and usage

@pytest.mark.parametrize("command", COMMANDS)
def test_help(run_quern, command):
    done = run_quern(*command.split(), "--help")
    assert done.stderr == ""
    if command != "help":
        assert done.stdout.startswith(f"quern {command}: ")
        assert done.stdout == run_quern("help", *command.split()).stdout
    assert "130" in done.stdout and "replay differs" in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_short_help_names_every_command(run_quern):
    done = run_quern()
    assert all(re.search(rf"^  {c} ", done.stdout, re.M) for c in COMMANDS)


def test_every_option_of_train_is_in_its_help(run_quern):
    text = run_quern("train", "--help").stdout
    for name in """data labels label test test-labels valid valid-labels scale model loss optimizer
            momentum beta1 beta2 epsilon weight-decay lr schedule lr-step lr-gamma warmup batch
            epochs seed arith grain init unit devices threads isa gpu-isa shares device-timeout trace checkpoint
            checkpoint-every resume run-dir missing meet ranks rank key-file interface meet-timeout
            rank-timeout data-from-rank0 alone quiet json output""".split():
        assert re.search(rf"^  (-o, )?--{name}( |$)", text, re.M), name


@pytest.mark.parametrize("words, says", [
    (["trian"], 'did you mean "train"'),
    (["data", "inof", "x"], 'did you mean "data info"'),
    (["data"], "quern data info FILE"),
    (["model", "shwo"], 'did you mean "model show"'),
    (["model"], "quern model list"),
    (["train", "--epcohs", "3"], "did you mean --epochs?"),
    (["train", "--lerning-rate", "3"], "quern train --help"),
    (["train", "--loss", "mes"], 'did you mean "mse"'),
    (["train", "--arith", "int14"], 'did you mean "i14"? it is one of f32, i7, i14 or i21'),
    (["train", "--lr"], "write --lr X"),
    (["train", "--lr", "--batch", "3"], "--lr requires a value"),
    (["train", "--data", "-o", "x"], "--data requires a value"),
    (["train", "--help=3"], "--help takes no value"),
    (["train", "--batch", "3", "--batch=4"], "--batch is given twice"),
    (["train", "--quiet=1"], "--quiet takes no value"),
    (["train", "extra"], '"extra" is an extra argument'),
    (["train", "t.csv", "-o", "x"], "name data with --data: --data t.csv"),
    (["fit", "kmeans", "t.csv"], "name data with --data: --data t.csv"),
    (["data", "head", "x", "-n", "0"], '--items (-n) cannot be "0"'),
    (["train"], "add -o"),
    (["train", "-o", "x", "--resume"], "add --checkpoint DIR"),
    (["train", "-o", "x", "--checkpoint-every", "5"], "add --checkpoint DIR"),
    (["train", "-o", "x", "--checkpoint", "d", "--checkpoint-every", "5y"], "minutes (5m)"),
    (["train", "-o", "x", "--test", "t.csv"], "--test needs --data"),
    (["train", "-o", "x", "--resize", "9x9"], "--resize needs --data"),
    (["train", "-o", "x", "--no-cache"], "--no-cache needs --data"),
    (["train", "-o", "x", "--header", "no"], "--header needs --data"),
    (["devices", "--model", "lenet", "--resize", "9x9"], "--resize needs --costs"),
    (["devices", "--model", "lenet", "--costs", "--resize", "9x9"], "--resize needs --data"),
    (["train", "-o", "x", "--lr-step", "3"], "--schedule step"),
    (["train", "-o", "x", "--momentum", "0.9", "--optimizer", "adam"], "--optimizer momentum"),
    (["train", "-o", "x", "--beta2", "0.9"], "--optimizer adam"),
    (["train", "-o", "x", "--nesterov"], "--optimizer momentum"),
    (["train", "-o", "x", "--nesterov", "--momentum", "0"], "write a momentum greater than 0"),
    (["train", "-o", "x", "--nesterov", "--momentum", "0", "--optimizer", "momentum"], "--nesterov does nothing"),
    (["train", "-o", "x", "--smoothing", "0.1", "--loss", "mse"], "--loss cross-entropy"),
    (["train", "-o", "x", "--optimizer", "lbfgs", "--batch", "64"], "leave it out, or write another --optimizer"),
    (["train", "-o", "x", "--optimizer", "adam", "--l1", "0.1"], "--optimizer lbfgs"),
    (["train", "-o", "x", "--no-intercept"], "--optimizer lbfgs"),
    (["train", "-o", "x", "--optimizer", "lbfgs", "--tolerance", "0"], "greater than 0"),
    (["train", "-o", "x", "--optimizer", "lbfgs", "--model", "dense 9 dropout 0.1; dense 10 softmax"], "leave it out"),
    (["plan", "--team", "host(cpu 1k)", "--optimizer", "lbfgs"], "--optimizer sgd"),
    (["train", "-o", "x", "--isa", "AVX2"], 'did you mean "avx2"?'),
    (["train", "-o", "x", "--ep", "3"], "did you mean --epochs?"),
    (["train", "-o", "x", "--devices", "cpu,cpu"], "cpu is in the list of devices twice"),
    (["train", "-o", "x", "--devices", ""], "the value of --devices is empty"),
    (["train", "-o", "x", "--devices", ":"], "auto, or a list of cpu, cpu:4"),
    (["train", "-o", "x", "--devices", "opencl:x"], "KIND:0 or KIND:all"),
    (["train", "-o", "x", "--devices", "cpu:0"], "invalid number of cores"),
    (["train", "-o", "x", "--devices", "cpu:99999"], "invalid number of cores"),
    (["train", "-o", "x", "--devices", "none"], "no device is left to compute with"),
    (["train", "-o", "x", "--devices", "gpu"], "this machine has cpu"),
    (["train", "-o", "x", "--devices", "cpu", "--shares", "3,1"], "2 shares of the work for 1"),
    (["train", "-o", "x", "--devices", "cpu", "--shares", "x"], 'invalid share "x"'),
    (["train", "-o", "x", "--device-timeout", "0"], "a number of seconds"),
    (["train", "-o", "x", "--device-timeout", "1e9"], "seconds, at most 86400"),
    (["train", "-o", "x", "--trace", "x"], "name two files with -o and --trace"),
    (["predict", "m", "--data", "d", "--devices", "cpu,"], "an empty entry"),
    (["devices", "--shares", "1"], "--shares needs --model"),
    (["replay", "m", "--devices", "auto,cpu"], '"auto" stands alone'),
    (["replay", "m", "-o", "x", "--trace", "x"], "name two files with -o and --trace"),
    (["predict"], "MODEL is missing"),
    (["predict", "m"], "add --data FILE"),
    (["predict", "."], "quern predict MODEL --data ."),
    (["predict", ".", "--data", "m"], '"." looks like data, not like a model'),
    (["predict", "photos.tar"], "quern predict MODEL --data photos.tar"),
    (["predict", "m", "--data", "d", "--json"], "-o predictions.csv"),
    (["data", "synth", "digits", "-o", "x.png"], ".csv, .tar or .idx"),
    (["data", "synth", "digits", "-o", "x.csv", "--labels", "y"], "leave --labels out"),
    (["help", "trane"], "quern help"),
    # What others call it.
    (["fit", "network", "--data", "x"], "quern train makes networks"),
    (["Eval", "m"], 'Quern calls it "evaluate".'),
    (["infer"], 'Quern calls it "predict".'),
    (["inspect", "x.csv"], 'Quern calls it "data info".'),
    (["squeue"], 'Quern calls it "jobs".'),
    (["train", "--batch-size", "3"], "Quern calls it --batch."),
    (["train", "--learning-rate=3"], "Quern calls it --lr."),
    (["train", "--learning_rate", "3"], "Quern calls it --lr."),
    (["train", "--n-epochs", "3"], "Quern calls it --epochs."),
    (["train", "--num-epochs", "3"], "Quern calls it --epochs."),
    (["train", "--l2", "3"], "Quern calls it --weight-decay."),
    (["train", "--lr-decay", "3"], "Quern calls it --lr-gamma: with --schedule step."),
    (["train", "--hidden", "500"], "Quern calls it --model: such as --model"),
    (["train", "--activation", "relu"], "Quern calls it --model"),
    (["train", "--patience", "3"], "Quern calls it --early-stopping"),
    (["train", "--sep", ";"], "the separator of a CSV file is found from its content"),
    (["predict", "m", "--delimiter", ";"], "the separator of a CSV file is found"),
    (["train", "--nproc", "2"], "Quern calls it --ranks."),
    (["train", "--nproc_per_node=2"], "Quern calls it --ranks."),
    (["train", "--gpus", "2"], "Quern calls it --devices"),
    (["train", "--device", "cuda"], "Quern calls it --devices"),
    (["train", "--workers", "2"], "Quern calls it --threads."),
    (["train", "-j", "2"], "Quern calls it --threads."),
    (["train", "--out", "m"], "Quern calls it --output."),
    (["train", "--target", "y"], "Quern calls it --label."),
    (["train", "--val-split", "0.1"], "Quern calls it --valid"),
    (["train", "--test-size", "0.1"], "Quern calls it --valid"),
    (["train", "--random-state", "1"], "Quern calls it --seed."),
    (["train", "--master-addr", "n1"], "Quern calls it --meet"),
    (["train", "--Weight_Decay", "1"], "did you mean --weight-decay?"),
    (["submit", "--mem", "8G", "train"], "Quern calls it --memory."),
    (["submit", "--gres", "gpu:1", "train"], "Quern calls it --gpus."),
    (["submit", "--nodes", "2", "train"], "Quern calls it --ranks."),
    (["train", "-o", "x", "--optimizer", "AdamW"], 'did you mean "adamw"?'),
    (["train", "-o", "x", "--loss", "crossentropy"], 'did you mean "cross-entropy"?'),
    (["train", "-o", "x", "--loss", "nll"], 'did you mean "cross-entropy"?'),
    (["train", "-o", "x", "--loss", "mean_squared_error"], 'did you mean "mse"?'),
    (["train", "-o", "x", "--arith", "bf16"], 'did you mean "i14"?'),
    (["train", "-o", "x", "--model", "dense 5 elu; dense 10 softmax"], '"relu" is nearest'),
    (["train", "-o", "x", "--optimizer", "adagrad"], 'Quern does not have it, and "adam" is nearest'),
])
def test_bad_usage(run_quern, tmp_path, words, says):
    done = run_quern(*words, status=2, cwd=tmp_path)
    assert says in done.stderr and (done.stdout == "" or "--json" in words)
    assert re.match(r"quern( \w+)*: \S", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_options_may_be_written_either_way(run_quern, digits, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    run_quern("train", "--data", digits / "train.csv", "--epochs", 1, "--lr", "0.05", "-o", a)
    run_quern("train", f"--output={b}", "--lr=0.05", f"--data={digits / 'train.csv'}", "--epochs=1")
    assert sha256(a) == sha256(b)


def test_version_and_devices(run_quern):
    version = run_quern("version").stdout
    assert re.match(r"quern \d+\.\d+\.\d+\nexactness contract: 9\n", version)
    assert "compiler" in version
    devices = events(run_quern("devices", "--json").stdout)
    assert devices[0]["kind"] == "cpu"
    assert 1 <= devices[0]["cores"] <= os.cpu_count()
    assert devices[0]["isa"] in devices[0]["isas"].split() and "scalar" in devices[0]["isas"]
    assert devices[0]["name"] in run_quern("devices").stdout


def test_output_to_a_full_device_is_a_failure(quern):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([quern, "help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "No space left" in done.stderr


def test_predictions_that_are_lost_are_not_counted(quern, digits, trained):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([quern, "predict", trained[0], "--data", digits / "test.csv"],
                              stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "accuracy" in done.stderr
    assert done.stderr.count("No space left") == 1 and "predictions in" not in done.stderr


# ---------------------------------------------------------------- data

def test_data_info(run_quern, digits):
    told = {}
    for name in ("train.csv", "train.csv.gz", "train.idx", "train.idx.gz"):
        beside = digits / name.replace("train", "train-labels")
        labels = [] if "csv" in name else ["--labels", beside]
        told[name] = events(run_quern("data", "info", digits / name, *labels, "--json").stdout)[0]
    info = told["train.csv"]
    with open(digits / "train.csv", newline="") as f:
        rows = list(csv.reader(f))[1:]
    labels = [int(r[0]) for r in rows]
    assert info["counts"] == [labels.count(c) for c in range(10)]
    pixels = [int(v) for r in rows for v in r[1:]]
    assert (info["min"], info["max"]) == (min(pixels), max(pixels))
    assert (info["items"], info["features"], info["classes"]) == (600, 784, 10)
    assert {t["digest"] for t in told.values()} == {info["digest"]}
    assert {n: t["format"] for n, t in told.items()} == {n: n[6:] for n in told}


def test_data_info_draws(run_quern, digits):
    done = run_quern("data", "info", digits / "train.idx", "--labels", digits / "train-labels.idx",
                     "--show", 2)
    assert len(re.findall(r"^item \d, label \d$", done.stdout, re.M)) == 2
    assert re.search(r"[#%@]", done.stdout.split("item 0")[1])


def test_an_item_is_the_same_however_it_is_drawn(run_quern, digits, tmp_path):
    run_quern("data", "synth", "digits", "--items", 800, "-o", tmp_path / "all.csv")
    every = (tmp_path / "all.csv").read_text().splitlines()
    parts = [(digits / n).read_text().splitlines() for n in ("train.csv", "test.csv")]
    assert every == parts[0] + parts[1][1:]


# ---------------------------------------------------------------- the standing job, small

def test_train_says_what_it_did(trained):
    out, done = trained
    assert done.stdout.splitlines()[-1] == f"{sha256(out)}  {out}"
    assert re.search(r"^test accuracy [\d.]+ % \(\d+ of 200\)", done.stdout, re.M)
    table = re.findall(r"^ +\d +((?: +[\d.]+){10}) +[\d.]+ %$", done.stdout, re.M)
    assert len(table) == 10
    cells = [[0 if c == "." else int(c) for c in row.split()] for row in table]
    assert sum(map(sum, cells)) == 200
    right = int(re.search(r"\((\d+) of 200\)", done.stdout)[1])
    assert sum(cells[i][i] for i in range(10)) == right
    assert re.search(r"^time [\d.]+ s, [\d,]+ items/s$", done.stdout, re.M)
    assert re.search(r"^  cpu +100\.0 % of the items, .* computing \d+ % of the time$", done.stdout, re.M)
    # What only who tunes a run needs is after --verbose.
    assert not re.search(r"bound|core busy|first step", done.stdout)
    # Without a terminal: plain lines, one for each epoch, no control characters.
    assert re.findall(r"^ +(\d)/3 ", done.stderr, re.M) == ["1", "2", "3"]
    assert not re.search(r"[\r\x1b]", done.stderr)


@pytest.mark.parametrize("command", ["train", "replay"])
def test_verbose_says_where_the_time_went(run_quern, digits, trained, tmp_path, command):
    data = ["--data", digits / "train.csv"]
    words = [command, *data, *SMALL] if command == "train" else [command, trained[0], *data]
    done = run_quern(*words, "--verbose", "-o", tmp_path / "m")
    for line in (r"first step after [\d.]+ s", r"steps [\d.]+ s, the rest is evaluation",
                 r"lower bound [\d.]+ s, [\d.]+ % of the time: all devices", r"    core busy( +\d+ %)+"):
        assert re.search(rf"^{line}", done.stdout, re.M), line
    assert sha256(tmp_path / "m") == sha256(trained[0])


def test_format_of_the_data_does_not_matter(run_quern, digits, trained, tmp_path):
    for number, data in enumerate((["train.csv.gz"], ["train.idx", "train-labels.idx"],
                                   ["train.idx.gz", "train-labels.idx.gz"])):
        labels = ["--labels", digits / data[1]] if data[1:] else []
        out = tmp_path / str(number)
        run_quern("train", "--data", digits / data[0], *labels, *SMALL, "--quiet", "-o", out)
        assert sha256(out) == sha256(trained[0])


@pytest.mark.parametrize("how", [["--threads", "1"], ["--threads", "3"], ["--isa", "scalar"],
                                 ["--run-dir", "RUN"], ["--valid", "TEST"]])
def test_how_it_runs_does_not_matter(run_quern, digits, trained, tmp_path, how):
    how = [{"RUN": tmp_path / "run", "TEST": digits / "test.csv"}.get(w, w) for w in how]
    out = tmp_path / "m"
    done = run_quern("train", "--data", digits / "train.csv", *SMALL, *how, "--quiet", "-o", out)
    assert sha256(out) == sha256(trained[0])
    assert done.stdout == f"{sha256(out)}  {out}\n" and done.stderr == ""
    if "--run-dir" in how:
        assert any((tmp_path / "run").iterdir())


@pytest.mark.parametrize("how", [["--seed", "2"], ["--batch", "50"], ["--grain", "16"],
                                 ["--valid", "0.2"], ["--lr", "0.11"], ["--unit", "40"]])
def test_what_is_in_the_recipe_does_matter(run_quern, digits, trained, tmp_path, how):
    out = tmp_path / "m"
    run_quern("train", "--data", digits / "train.csv", *SMALL, *how, "--quiet", "-o", out)
    assert sha256(out) != sha256(trained[0])


def test_integers_name_the_layer_that_went_wrong(run_quern, digits, tmp_path):
    done = run_quern("train", "--data", digits / "train.csv", "--arith", "i14", "--lr", "1e30",
                     "--model", "dense 30 relu; dense 20 relu; dense 10 softmax", "--devices",
                     "cpu", "-o", tmp_path / "m", status=1)
    assert "became NaN: outputs of layer 1 are not finite\n  at step 2" in done.stderr


@pytest.mark.parametrize("name, told", [("a\x1b[31mb", "a?[31mb"), ("a" + 30 * "\u00e4", "a" + 19 * "\u00e4")])
def test_names_of_columns_in_a_note(run_quern, tmp_path, name, told):
    """No name drives the terminal, and a long one is not cut inside a letter."""
    rows = "".join(f"{i % 2},0.{i + 100},{i + 5}e5\n" for i in range(80))
    (tmp_path / "t.csv").write_text(f"y,{name},b\n{rows}", encoding="utf-8")
    done = run_quern("train", "--data", tmp_path / "t.csv", "--arith", "i14", "--scale", "none",
                     "--lr", "1e-9", "--unit", 10, "--model", "dense 2 softmax", "--epochs", 1, "-o",
                     tmp_path / "m", text=False)
    assert f"(1 of 2): {told}; --scale" in done.stderr.decode()


@pytest.mark.parametrize("words, says", [
    (["--momentum", "0.5"], "momentum 0.5,"),
    (["--optimizer", "momentum"], "momentum 0.9,"),
    (["--momentum", "0"], "sgd,"),
    (["--optimizer", "adamw"], "adamw,")])
def test_the_optimiser_that_is_taken_is_told(run_quern, digits, tmp_path, words, says):
    out = tmp_path / "m"
    done = run_quern("train", "--data", digits / "test.csv", "--epochs", 1, "--model",
                     "dense 10 softmax", *words, "-o", out)
    assert f"recipe  loss cross-entropy, {says} learning rate" in done.stderr


def test_labels_that_no_item_has_are_told(run_quern, tmp_path):
    def told(labels, *more):
        lines = [f"{label},{i % 7}.5,{i % 5}" for i, label in enumerate(labels * 20)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        return run_quern("train", "--data", tmp_path / "t.csv", "--epochs", 1, *more, "-o",
                         tmp_path / "m").stderr

    assert "note: 1 of 3 classes has no item: 0; --label names the column" in told([1, 2])
    assert ("note: 6 of 13 classes have no item: 1, 2, 4, 6, 8 and 1 more;"
            in told([0, 3, 5, 7, 9, 11, 12]))
    assert "note: all items are of one class" in told([0])
    assert "note" not in told([0, 1, 2]) and told([1, 2], "--quiet") == ""
    assert "\n        40 items of 2 features, 2 classes\n" in told([0, 1])
    assert "run     1 epoch of 5 steps, " in told([0, 1])


def test_json_stream(run_quern, digits, trained, tmp_path):
    out = tmp_path / "m"
    done = run_quern("train", "--data", digits / "train.csv", "--test", digits / "test.csv",
                     *SMALL, "--json", "-o", out)
    got = [e for e in events(done.stdout) if e["event"] != "note"]
    assert [e["event"] for e in got] == ["start", "epoch", "epoch", "epoch", "end"]
    start, last, end = got[0], got[-2], got[-1]
    assert {k: start[k] for k in ("items", "features", "classes", "parameters", "steps")} == {
        "items": 600, "features": 784, "classes": 10, "parameters": 784 * 24 + 24 + 24 * 10 + 10,
        "steps": 3 * 10}
    assert start["layers"] == ["dense 24 tanh", "dense 10 softmax"]
    assert start["threads"] >= 1 and start["isa"] != "auto"
    for key in "epoch epochs items seconds items_per_s rate train_loss test_accuracy".split():
        assert isinstance(last[key], (int, float)), key
    assert last["valid_loss"] is None and last["items"] == 600 and last["epoch"] == 3
    assert end["digest"] == sha256(out) == sha256(trained[0]) and end["file"] == str(out)
    assert sum(map(sum, end["confusion"])) == 200
    assert end["accuracy"] == sum(end["confusion"][i][i] for i in range(10)) / 200
    assert end["accuracy"] == last["test_accuracy"]
    assert 0 < end["bound"] and 0 < end["seconds"] and end["seconds_to_first_step"] >= 0
    assert all(0 <= b <= 1.01 for b in end["busy"]) and end["steps"] == 30
    assert abs(end["bound_over_T"] - end["bound"] / end["seconds"]) < 1e-9
    assert [w["name"] for w in end["workers"]] == start["workers"] and "cpu" in start["workers"]
    assert abs(sum(w["share"] for w in end["workers"]) - 1) < 1e-9
    for key in "grains steps items_per_s busy bytes_up seconds_down".split():
        assert all(isinstance(w[key], (int, float)) for w in end["workers"]), key
    assert all(w["joules"] is None or w["joules"] > 0 for w in end["workers"])
    assert not any(w["lost"] for w in end["workers"])
    assert done.stderr == ""


def test_json_error(run_quern, tmp_path):
    done = run_quern("train", "--data", "gone.csv", "--json", "-o", "m", status=1, cwd=tmp_path)
    error = events(done.stdout)[-1]
    assert error["event"] == "error" and error["exit"] == 1 and "gone.csv" in error["where"]
    assert error["what"] in done.stderr and error["remedy"] in done.stderr
    done = run_quern("train", "--json", "--bacth=3", status=2, cwd=tmp_path)
    assert events(done.stdout)[0]["exit"] == 2


def test_predict(run_quern, digits, trained, tmp_path):
    out = tmp_path / "p.csv"
    done = run_quern("predict", trained[0], "--data", digits / "test.csv", "--outputs", "-o", out)
    with open(out, newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 200 and [int(r["item"]) for r in rows] == list(range(200))
    right = sum(r["label"] == r["prediction"] for r in rows)
    assert f"({right} of 200)" in done.stdout and f"({right} of 200)" in trained[1].stdout
    for r in rows:
        outputs = [float(r[f"p{j}"]) for j in range(10)]
        assert outputs.index(max(outputs)) == int(r["prediction"])
        assert float(r["score"]) == max(outputs)
    # The same table on the standard output; the summary then keeps away from it.
    piped = run_quern("predict", trained[0], "--data", digits / "test.csv", "--outputs")
    assert piped.stdout == out.read_text() and "accuracy" in piped.stderr
    told = events(run_quern("predict", trained[0], "--data", digits / "test.idx", "--labels",
                            digits / "test-labels.idx", "--json", "-o", out).stdout)[0]
    assert told["items"] == 200 and told["accuracy"] == right / 200


def test_predict_without_labels(run_quern, digits, trained, tmp_path):
    bare = tmp_path / "bare.csv"
    lines = (digits / "test.csv").read_text().splitlines()
    bare.write_text("\n".join(line.split(",", 1)[1] for line in lines) + "\n")
    done = run_quern("predict", trained[0], "--data", bare, status=1)
    assert "add --unlabelled" in done.stderr and done.stdout == ""
    done = run_quern("predict", trained[0], "--data", bare, "--unlabelled")
    assert done.stdout.startswith("item,prediction,score\n") and "accuracy" not in done.stderr


# ---------------------------------------------------------------- replay and resume

def test_replay_identical(run_quern, digits, trained):
    done = run_quern("replay", trained[0], "--data", digits / "train.idx", "--labels",
                     digits / "train-labels.idx", "--threads", 1)
    assert done.stdout.splitlines()[-1] == f"replay: identical, {sha256(trained[0])}"
    done = run_quern("replay", trained[0], "--data", digits / "train.csv", "--quiet")
    assert done.stdout == f"replay: identical, {sha256(trained[0])}\n"


def test_replay_of_a_changed_model_differs(run_quern, digits, trained, tmp_path):
    changed, again = tmp_path / "changed", tmp_path / "again"
    data = bytearray(trained[0].read_bytes())
    data[-4 * 10 - 4 * 240 + 4 * (24 * 3 + 5)] ^= 1  # layer1.weight[3][5], its lowest bit
    changed.write_bytes(data)
    done = run_quern("replay", changed, "--data", digits / "train.csv", "-o", again, status=3)
    assert "layer1.weight[3][5]" in done.stderr and "1 of 240 values" in done.stderr
    told = re.search(r"(\S+) in the file, (\S+) now", done.stderr)
    assert told[1] != told[2]
    assert again.read_bytes() == trained[0].read_bytes()


def test_replay_of_changed_data_is_refused(run_quern, digits, trained, tmp_path):
    before = events(run_quern("data", "info", digits / "train.csv", "--json").stdout)[0]["digest"]
    changed = tmp_path / "changed.csv"
    lines = (digits / "train.csv").read_text().splitlines()
    cells = lines[7].split(",")
    cells[400] = str(int(cells[400]) ^ 1)
    lines[7] = ",".join(cells)
    changed.write_text("\n".join(lines) + "\n")
    after = events(run_quern("data", "info", changed, "--json").stdout)[0]["digest"]
    done = run_quern("replay", trained[0], "--data", changed, status=1)
    assert before in done.stderr and after in done.stderr and before != after


def test_the_built_in_digits_and_their_replay(run_quern, digits, trained, tmp_path):
    out = tmp_path / "m"
    done = run_quern("train", "--model", "dense 10 softmax", "--epochs", 1, "-o", out)
    assert "built-in digits" in done.stderr
    assert re.search(r"test accuracy .* of 4000\)", done.stdout)
    done = run_quern("replay", out)
    assert done.stdout.splitlines()[-1] == f"replay: identical, {sha256(out)}"
    done = run_quern("replay", trained[0], status=2)
    assert "add --data FILE" in done.stderr


def test_resume_after_the_end_and_from_nothing(run_quern, digits, trained, tmp_path):
    job = ["train", "--data", digits / "train.csv", *SMALL, "--quiet", "--checkpoint",
           tmp_path / "state", "--checkpoint-every", 4, "--resume"]
    for name in ("a", "b"):  # the first finds an empty folder, the second one of a finished run
        run_quern(*job, "-o", tmp_path / name)
        assert sha256(tmp_path / name) == sha256(trained[0])


# ---------------------------------------------------------------- the live bar

def on_terminal(quern, args, columns, **environment):
    """Runs in a terminal of that width; returns the exit status and all that was printed."""
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL")}
    env.update({"TERM": "xterm", **environment})
    pid, master = pty.fork()
    if pid == 0:  # before the program: on a loaded machine it may draw its first bar sooner than we go on
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(quern, [quern, *map(str, args)], env)
    seen, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            block = os.read(master, 65536)
        except OSError:  # the other side closed
            block = b""
        if not block:
            break
        seen += block
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()


def screen(text):
    """The lines that stand on a terminal after `text`, as far as this program's controls go."""
    lines, column = [""], 0
    for token in re.findall(r"\x1b\[K|\x1b\[\d*m|\r|\n|[^\x1b\r\n]", text):
        if token == "\n":
            lines.append("")
        elif token == "\r":
            column = 0
        elif token == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not token.startswith("\x1b"):
            lines[-1] = lines[-1][:column].ljust(column) + token + lines[-1][column + 1:]
            column += 1
        if token == "\n":
            column = 0
    return lines


LONG = ["--model", "dense 200 tanh; dense 10 softmax", "--epochs", "6", "--momentum", "0.9"]


@pytest.mark.parametrize("columns", [120, 80, 40])
def test_live_bar(quern, digits, tmp_path, columns):
    began = time.monotonic()
    status, seen = on_terminal(quern, ["train", "--data", digits / "train.csv", *LONG, "-o",
                                       tmp_path / "m"], columns, LC_ALL="C.UTF-8")
    seconds = time.monotonic() - began
    assert status == 0
    bars = re.findall(r"\r(epoch \d/6[^\r\n]*?)\x1b\[K", seen)
    assert 6 <= len(bars) <= 8 * seconds + 7  # one after each epoch's line, else 8 a second
    plain = [re.sub(r"\x1b\[\d*m", "", b) for b in bars]
    assert all(len(b) < columns for b in plain)
    assert all("│" in b for b in plain) and any("\x1b[36m" in b for b in bars)
    if columns == 120:
        assert all(re.search(r"step \d+/60 .*items/s .*loss .* left$", b) for b in plain)
    # Cleared at the end: on the screen stand the epochs' lines and no bar.
    lines = screen(seen)
    assert not [x for x in lines if "│" in x]
    assert len([x for x in lines if re.match(r" +\d/6 ", x)]) == 6
    assert HEX.search(lines[-2])


def test_live_bar_without_colour_or_utf8(quern, digits, tmp_path):
    train = ["train", "--data", digits / "train.csv", *LONG, "-o", tmp_path / "m"]
    status, seen = on_terminal(quern, train, 80, LC_ALL="C", NO_COLOR="1")
    assert status == 0 and "\x1b[36m" not in seen and seen.isascii()
    assert re.search(r"\repoch 1/6 \[=*>? *\]", seen)
    status, seen = on_terminal(quern, train, 80, LC_ALL="C", TERM="dumb")
    assert status == 0 and "\x1b" not in seen
    status, seen = on_terminal(quern, [*train, "--quiet"], 80)
    assert status == 0 and re.fullmatch(r"[0-9a-f]{64}  \S+\r\n", seen)


# ---------------------------------------------------------------- the tutorial

def console_blocks(path):
    """[(command, its printed output)] of the ```console blocks, in order."""
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```", path.read_text(), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append([line[2:], ""])
            elif steps[-1][0].endswith("\\") and line.startswith("> "):
                steps[-1][0] = steps[-1][0][:-1] + line[2:]
            elif line.startswith("> "):
                steps[-1][0] += "\n" + line[2:]
            else:
                steps[-1][1] += line + "\n"
    return steps


def what_must_agree(text):
    """The digests, accuracies and notes in a text: the same on every machine. Times are not."""
    told = re.findall(r"accuracy [\d.]+ % \(\d+ of \d+\)|^note: with --arith.*|^\"accuracy.*|^macro F1 .*|^mean IoU .*|^MAE .*|^equal$"
                      r"|^\d+,.*\.png,.*|^0, 1, .*", text, re.M)
    return HEX.findall(text) + told


def in_one_shell(commands, **how):
    """[(exit code, what it printed)] of commands that one shell runs, as a reader's does."""
    mark = f"---- {uuid.uuid4().hex}"
    script = "".join(f"{c}\necho '{mark}' $?\n" for c in commands) + "wait\n"
    done = subprocess.run(["bash", "-c", script], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, **how)
    parts = re.split(f"{mark} (\\d+)\n", done.stdout)
    return list(zip(map(int, parts[1::2]), parts[0::2]))


@pytest.mark.parametrize("page", ["tutorial.md", "tables.md"])
def test_pages_to_type_along(quern, tmp_path, page):
    steps = console_blocks(ROOT / "docs" / page)
    assert len(steps) >= 8
    mpirun = launch.MPIS["openmpi4"]["program"]
    runs = [s for s in steps if shutil.which(mpirun) or not s[0].startswith("mpirun ")]
    port = f"127.0.0.1:{launch.free_port()}"
    commands = [re.sub("^mpirun ", f"{mpirun} ", command).replace("127.0.0.1:7777", port)
                for command, printed in runs]
    path = f"{os.path.dirname(quern)}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    env = launch.users_environment(PATH=path)
    if any(command.startswith("python3 ") for command in commands):
        pytest.importorskip("numpy")
        env["PYTHONPATH"] = str(python_package.folder())
    did = in_one_shell(commands, cwd=tmp_path, env=env)
    for (command, printed), (code, told) in zip(runs, did, strict=True):
        said = re.search(r"\(exit code (\d+)\)", printed)
        assert code == (int(said[1]) if said else 0), f"{command}\n{told}"
        assert what_must_agree(printed) == what_must_agree(told), f"{command}\n{told}"
    if runs != steps:
        pytest.skip(f"all but {len(steps) - len(runs)} commands agree; no {mpirun} here")


@pytest.mark.parametrize("command", ["train", "predict", "replay", "plan", "devices", "submit",
                                     "jobs", "data info", "data synth digits", "model show"])
def test_notes_fit_the_command(quern, command):
    """A remedy for an option of another program names options of this command only."""
    source = (pathlib.Path(__file__).parent.parent / "app/synonyms.c").read_text()
    words = [row.split()[0] for row in re.findall(r'^    \{"([^"]+)', source, re.M)]
    assert len(words) > 60
    shown = subprocess.run([quern, *command.split(), "--help"], capture_output=True, text=True).stdout
    known = set(re.findall(r"^  .{0,6}--([\w-]+)", shown, re.M)) | {"help"}
    for word in words:
        done = subprocess.run([quern, *command.split(), f"--{word}", "1"], capture_output=True, text=True)
        if done.returncode != 2 or len(done.stderr.splitlines()) < 2:
            continue
        remedy = done.stderr.splitlines()[1]
        if "lists the options" in remedy:
            assert set(re.findall(r"--([a-z][\w-]*)", remedy)) <= known, (word, remedy)
