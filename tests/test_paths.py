"""No file that a command names overwrites another: refused before anything is read or trained."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

import ranks

NET = ["--model", "dense 10 softmax", "--epochs", "1", "--threads", "1"]
TRAIN = ["train", "--data", "t.csv", *NET]


@pytest.fixture(scope="module")
def model(run_quern, tmp_path_factory):
    d = tmp_path_factory.mktemp("model")
    run_quern("data", "synth", "digits", "--items", 40, "--quiet", "-o", d / "t.csv")
    run_quern("train", "--data", d / "t.csv", *NET, "--quiet", "-o", d / "m")
    return d


@pytest.fixture
def here(model, tmp_path):
    """A folder with a table, a model and a key, and a folder `rd` with links to what is not there
    yet."""
    (tmp_path / "t.csv").write_bytes((model / "t.csv").read_bytes())
    (tmp_path / "m").write_bytes((model / "m").read_bytes())
    (tmp_path / "key").write_text("a secret of more than sixteen characters\n")
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "rd" / "a").mkdir(parents=True)
    (tmp_path / "rd" / "a" / "1.png").write_bytes(b"an image")
    (tmp_path / "to-rd").symlink_to("rd")
    (tmp_path / "to-t.csv").symlink_to("t.csv")
    os.link(tmp_path / "t.csv", tmp_path / "hard.csv")
    return tmp_path


def contents(folder):
    return {str(p.relative_to(folder)): os.readlink(p) if p.is_symlink() else p.read_bytes()
            for p in folder.rglob("*") if p.is_symlink() or p.is_file()}


def run(quern, args, cwd):
    return subprocess.run([quern, *map(str, args)], cwd=cwd, capture_output=True, text=True,
                          timeout=60)


REFUSED = {
    # outputs over inputs
    "-o t.csv": [*TRAIN, "-o", "./t.csv"],
    "-o link": [*TRAIN, "-o", "to-t.csv"],
    "-o hard link": [*TRAIN, "-o", "hard.csv"],
    "-o //": [*TRAIN, "-o", "rd/..//t.csv"],
    "-o --test": [*TRAIN, "--test", "to-t.csv", "-o", "t.csv"],
    "-o --valid": ["train", "--data", "m", "--valid", "t.csv", *NET, "-o", "hard.csv"],
    "-o --labels": ["train", "--data", "m", "--labels", "t.csv", *NET, "-o", "t.csv"],
    "--trace --data": [*TRAIN, "-o", "new", "--trace", "t.csv"],
    # outputs over outputs, none of which is there yet
    "-o --trace": [*TRAIN, "-o", "new", "--trace", "./new"],
    "-o --trace, link": [*TRAIN, "-o", "rd/new", "--trace", "to-rd/new"],
    "-o --run-dir": [*TRAIN, "-o", "m1", "--run-dir", "m1"],
    "-o --run-dir/": [*TRAIN, "-o", "m1", "--run-dir", "./m1/"],
    "-o --checkpoint": [*TRAIN, "-o", "m1", "--checkpoint", "rd/../m1"],
    "--trace --checkpoint": [*TRAIN, "-o", "m1", "--trace", "ck", "--checkpoint", "ck"],
    "--trace interrupted": [*TRAIN, "-o", "m1", "--trace", "m1.checkpoint"],
    # what a run keeps in its folders
    "-o rd/run.json": [*TRAIN, "-o", "rd/run.json", "--run-dir", "rd"],
    "-o rd/run.json, link": [*TRAIN, "-o", "to-rd/run.json", "--run-dir", "rd"],
    "-o rd/previous": [*TRAIN, "-o", "rd/previous-metrics.csv", "--run-dir", "to-rd"],
    "--trace rd/metrics": [*TRAIN, "-o", "m1", "--trace", "rd/metrics.csv", "--run-dir", "rd"],
    "--checkpoint rd/run.json": [*TRAIN, "-o", "m1", "--checkpoint", "rd/run.json", "--run-dir",
                                 "rd"],
    "-o rd/lock": [*TRAIN, "-o", "rd/lock", "--checkpoint", "rd"],
    "-o rd/checkpoint": [*TRAIN, "-o", "rd/checkpoint-000000000012.safetensors", "--checkpoint",
                         "rd"],
    # a folder of images
    "-o image": ["train", "--data", "rd", *NET, "-o", "rd/a/1.png"],
    "-o folder": ["train", "--data", "to-rd", *NET, "-o", "./rd/../rd/new"],
    "-o of --test": [*TRAIN, "--test", "rd", "-o", "to-rd/new"],
    "--run-dir folder": ["train", "--data", "rd", *NET, "-o", "x", "--run-dir", "rd/a/new"],
    "--sheet": ["data", "info", "rd", "--sheet", "rd/a/1.png"],
    "predict folder": ["predict", "m", "--data", "rd", "-o", "rd/predictions.csv"],
    # other commands
    "predict": ["predict", "m", "--data", "t.csv", "-o", "m"],
    "predict --data": ["predict", "m", "--data", "t.csv", "-o", "hard.csv"],
    "replay": ["replay", "m", "--data", "t.csv", "-o", "./m"],
    "replay --trace": ["replay", "m", "--data", "t.csv", "-o", "x", "--trace", "rd/../x"],
    "replay --data": ["replay", "m", "--data", "t.csv", "--trace", "to-t.csv"],
    "synth": ["data", "synth", "digits", "--items", "3", "-o", "x.idx", "--labels", "./x.idx"],
    "synth, link": ["data", "synth", "digits", "--items", "3", "-o", "rd/x.idx", "--labels",
                    "to-rd/x.idx"],
    "submit": ["submit", "--local", *TRAIN, "-o", "to-t.csv"],
    "submit --slurm": ["submit", "--slurm", *TRAIN, "-o", "m1", "--run-dir", "m1"],
    "submit --hostfile": ["submit", "--local", "--hostfile", "key", *TRAIN, "-o", "key"],
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(quern, here, case):
    before = contents(here)
    done = run(quern, REFUSED[case], here)
    assert done.returncode == 2 and done.stdout == "", (done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 3 and lines[2].startswith("  name "), done.stderr
    assert contents(here) == before


@pytest.mark.parametrize("name", ["metrics.csv", "run.json", "previous-metrics.csv",
                                  "previous-run.json"])
@pytest.mark.parametrize("option", ["--data", "--test"])
def test_data_in_the_folder_of_the_record(quern, here, option, name):
    """It would be moved when the run begins, and replaced when the next one does."""
    (here / "rd" / name).write_bytes((here / "t.csv").read_bytes())
    before = contents(here)
    data = ["--data", f"rd/{name}"] if option == "--data" else ["--data", "t.csv", option,
                                                                f"rd/{name}"]
    done = run(quern, ["train", *data, *NET, "-o", "m1", "--run-dir", "to-rd"], here)
    assert done.returncode == 2 and f"{option} is {name} in the folder of --run-dir" in done.stderr
    assert contents(here) == before


@pytest.mark.parametrize("args, lost", [
    ([*TRAIN, "-o", "m1"], "m1"),
    ([*TRAIN, "-o", "m1", "--run-dir", "rd"], "rd/run.json"),
    ([*TRAIN, "-o", "m1"], "t.csv"),
    (["predict", "m", "--data", "t.csv"], "t.csv"),
    (["predict", "m", "--data", "t.csv"], "m"),
    (["replay", "m", "--data", "t.csv"], "m"),
])
def test_the_standard_output_is_a_file_of_the_run(quern, here, args, lost):
    (here / lost).touch()
    before = contents(here)
    with open(here / lost, "ab") as to:
        done = subprocess.run([quern, *args], cwd=here, stdout=to, stderr=subprocess.PIPE,
                              text=True, timeout=60)
    assert done.returncode == 2 and "standard output" in done.stderr
    assert contents(here) == before


def test_what_is_no_conflict(quern, here):
    """One folder for all, one file for both streams, files beside those of the run."""
    (here / "rd" / "data.csv").write_bytes((here / "t.csv").read_bytes())
    with open(here / "log", "wb") as log:
        done = subprocess.run([quern, "train", "--data", "rd/data.csv", "--test", "rd/data.csv",
                               *NET, "-o", "rd/m", "--trace", "rd/trace.json", "--run-dir", "rd",
                               "--checkpoint", "rd"], cwd=here, stdout=log, stderr=log, timeout=60)
    assert done.returncode == 0, (here / "log").read_text()
    assert {"m", "trace.json", "run.json", "metrics.csv", "lock"} <= set(os.listdir(here / "rd"))
    assert (here / "rd" / "data.csv").read_bytes() == (here / "t.csv").read_bytes()
    assert run(quern, [*TRAIN, "-o", "m"], here).returncode == 0  # replaces an older model


@pytest.mark.parametrize("args, words", [
    (["-o", "no/m"], "make that folder first, or name another path with -o"),
    (["-o", "m1", "--trace", "no/t"], "make that folder first, or name another path with --trace"),
    (["-o", "m1", "--run-dir", "no/rd"], "make that folder first"),
    (["-o", "m1", "--checkpoint", "no/ck"], "make that folder first"),
    (["-o", "m1", "--run-dir", "key"], "this is not a folder"),
    (["-o", "m1", "--checkpoint", "key"], "this is not a folder"),
    (["-o", "rd"], "this is a folder"),
    (["-o", "dangling"], "a symbolic link to nothing"),
    (["-o", "pipe"], "not a regular file"),
    (["-o", "m1", "--trace", "rd"], "this is a folder"),
    (["-o", "b" * 300], "File name too long"),
    (["-o", "m1", "--checkpoint", "b" * 300], "File name too long"),
])
def test_what_cannot_be_written(quern, here, args, words):
    (here / "dangling").symlink_to("nowhere")
    os.mkfifo(here / "pipe")
    before = contents(here)
    done = run(quern, [*TRAIN, *args], here)
    assert done.returncode == 1 and done.stdout == "" and words in done.stderr, done.stderr
    assert contents(here) == before


@pytest.mark.parametrize("args", [["-o", "locked/m"], ["-o", "m1", "--trace", "locked/t"],
                                  ["-o", "m1", "--run-dir", "locked"],
                                  ["-o", "m1", "--checkpoint", "locked/ck"]])
def test_a_folder_without_permission(quern, model, args):
    """Root may write anywhere, so the program runs as nobody, in a folder that all may enter."""
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        here.chmod(0o777)
        (here / "locked").mkdir(mode=0o500)
        (here / "t.csv").write_bytes((model / "t.csv").read_bytes())
        try:
            done = subprocess.run([quern, *TRAIN, *args], cwd=here, capture_output=True, text=True,
                                  timeout=60, user=65534 if os.geteuid() == 0 else None)
        except PermissionError:
            pytest.skip("nobody may run this program")
        assert done.returncode == 1 and "in a folder that can be written" in done.stderr
        assert sorted(os.listdir(here)) == ["locked", "t.csv"]


@pytest.mark.parametrize("option", ["-o", "--trace", "--run-dir"])
def test_the_key_of_the_ranks(quern, here, option):
    """All ranks have met by then, and end alike."""
    before = contents(here)
    more = [] if option == "-o" else ["-o", "m1"]
    done = ranks.run(quern, 2, *TRAIN, *more, option, "key", "--key-file", "key", cwd=here,
                     status=1 if option == "--run-dir" else 2)
    if option != "--run-dir":
        assert f"{option} would overwrite the file of --key-file" in done[0][2]
    assert contents(here) == before
