"""Options that would do nothing, and numbers out of any use, are refused with a remedy."""

import os
import subprocess

import pytest

# No device but the CPU, whatever this machine has.
NO_GPU = dict(os.environ, OCL_ICD_VENDORS="/nowhere", OCL_ICD_FILENAMES="", CUDA_VISIBLE_DEVICES="")
TRAIN = ["train", "--epochs", "1", "-o", "m"]
REFUSED = [
    ([*TRAIN, "--optimizer", "sgd", "--momentum", "0.5"], "--momentum does nothing with --optimizer sgd"),
    ([*TRAIN, "--optimizer", "sgd", "--momentum", "0"], "--momentum does nothing with --optimizer sgd"),
    ([*TRAIN, "--optimizer", "momentum", "--momentum", "0"], "does nothing with --momentum 0"),
    ([*TRAIN, "--optimizer", "adam", "--momentum", "0.5"], "--momentum does nothing"),
    ([*TRAIN, "--beta1", "0.5"], "--beta1 does nothing"),
    ([*TRAIN, "--lr-step", "3"], "--lr-step does nothing"),
    ([*TRAIN, "--schedule", "cosine", "--lr-gamma", "0.3"], "--lr-gamma does nothing"),
    ([*TRAIN, "--checkpoint", "ck", "--checkpoint-every", "99999999999h"], "--checkpoint-every cannot be"),
    ([*TRAIN, "--checkpoint", "ck", "--checkpoint-every", "8761h"], "--checkpoint-every cannot be"),
    ([*TRAIN, "--checkpoint", "ck", "--checkpoint-every", "1e-30s"], "--checkpoint-every cannot be"),
    ([*TRAIN, "--checkpoint-every", "5m"], "--checkpoint"),
    ([*TRAIN, "--resume"], "--checkpoint"),
    ([*TRAIN, "--device-timeout", "1e-30"], "cannot be given 1e-30 seconds"),
    ([*TRAIN, "--gpu-isa", "plain", "--devices", "cpu:1"], "--gpu-isa does nothing with --devices cpu:1"),
    ([*TRAIN, "--interface", "lo"], "--interface does nothing in a single process"),
    ([*TRAIN, "--meet-timeout", "5"], "--meet-timeout does nothing in a single process"),
    ([*TRAIN, "--rank-timeout", "5"], "--rank-timeout does nothing in a single process"),
    ([*TRAIN, "--data-from-rank0"], "--data-from-rank0 does nothing in a single process"),
    ([*TRAIN, "--data-from-rank0", "--alone"], "--data-from-rank0 does nothing in a single process"),
    ([*TRAIN, "--meet", "127.0.0.1:1", "--ranks", "2", "--rank", "0", "--rank-timeout", "1e-30"],
     "--rank-timeout cannot be"),
    ([*TRAIN, "--meet", "127.0.0.1:1", "--ranks", "2", "--rank", "0", "--meet-timeout", "1e30"],
     "--meet-timeout cannot be"),
    ([*TRAIN, "--quiet", "--verbose"], "--quiet contradicts --verbose"),
    (["replay", "m", "--verbose", "--quiet"], "--quiet contradicts --verbose"),
    (["submit", "--local", *TRAIN, "--optimizer", "sgd", "--momentum", "0.5"], "--momentum does nothing"),
    (["data", "info", "t.csv", "--show", "3", "--json"], "--show does nothing with --json"),
]


@pytest.mark.parametrize("args, words", REFUSED, ids=[" ".join(args[-4:]) for args, _ in REFUSED])
def test_refused(quern, tmp_path, args, words):
    (tmp_path / "t.csv").write_text("1,2\n0,3\n")
    done = subprocess.run([quern, *args], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and words in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) >= 2
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("args", [["--momentum", "0"], ["--optimizer", "momentum"],
                                  ["--checkpoint", "ck", "--checkpoint-every", "8760h"],
                                  ["--device-timeout", "0.001", "--devices", "cpu"]])
def test_taken(quern, tmp_path, args):
    (tmp_path / "t.csv").write_text("1,2\n0,3\n" * 9)
    done = subprocess.run([quern, *TRAIN, "--data", "t.csv", "--threads", "1", *args], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["train", "predict"])
def test_noted(quern, tmp_path, command):
    """More threads than cores, and an option for GPUs where there are none, are not errors: one script
    may serve machines of many kinds."""
    (tmp_path / "t.csv").write_text("1,2\n0,3\n" * 9)
    cores = len(os.sched_getaffinity(0))

    def notes(*args):
        words = TRAIN if command == "train" else ["predict", "m", "-o", "p"]
        done = subprocess.run([quern, *words, "--data", "t.csv", *map(str, args)], cwd=tmp_path,
                              capture_output=True, text=True, timeout=60, env=NO_GPU)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stderr.splitlines() if line.startswith("note: --")]

    subprocess.run([quern, *TRAIN, "--data", "t.csv", "--quiet"], cwd=tmp_path, check=True)
    assert notes() == [] and notes("--threads", 1) == []
    (many,) = notes("--threads", cores + 1)
    assert f"--threads {cores + 1} is more than the" in many
    assert notes("--threads", cores + 1, "--quiet") == []
    (useless,) = notes("--gpu-isa", "plain")
    assert "--gpu-isa does nothing" in useless and "quern devices" in useless


def test_one_rank_of_a_launcher_may_have_the_options_of_many(quern, tmp_path):
    """So that a script is right for any number of ranks. The launcher here is one rank of Slurm."""
    (tmp_path / "t.csv").write_text("1,2\n0,3\n" * 9)
    done = subprocess.run([quern, *TRAIN, "--data", "t.csv", "--threads", "1", "--data-from-rank0"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env={"SLURM_STEP_NUM_TASKS": "1", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
