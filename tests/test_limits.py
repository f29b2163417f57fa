"""Limits of the system: processor time, stack, sizes of files. A run keeps its work, or says what is wrong."""

import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import numpy
import pytest

import machine
from test_interrupt import attentive, checkpoints, digest


@pytest.fixture(scope="module")
def made(run_quern, tmp_path_factory):
    """A small table, and the words of a training with it."""
    d = tmp_path_factory.mktemp("limits")
    run_quern("data", "synth", "digits", "--items", 100, "--quiet", "-o", d / "t.csv")
    words = ["train", "--data", str(d / "t.csv"), "--model", "dense 10 softmax", "--quiet", "--threads", "1", "--optimizer", "adam"]
    run_quern(*words, "--epochs", 2, "-o", d / "m")
    return d, words


def limited(quern, words, cwd, **limits):
    """Runs a command with hard limits: limited(..., CPU=2)."""
    def limit():
        attentive()
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    return subprocess.run([quern, *map(str, words)], cwd=cwd, preexec_fn=limit, capture_output=True, text=True,
                          timeout=60 * machine.PATIENCE)


def test_processor_time(quern, made, tmp_path):
    """The system would kill at the limit. The run ends before, with a checkpoint from which it goes on."""
    done = limited(quern, [*made[1], "--epochs", 1_000_000, "--checkpoint", "c", "-o", "m"], tmp_path, CPU=2)
    assert done.returncode == 130, done
    step = int(re.search(r"interrupted: stopped after step (\d+) of", done.stderr)[1])
    assert checkpoints(tmp_path / "c")[-1].name == f"checkpoint-{step:012}.safetensors"
    assert not (tmp_path / "m").exists()


def test_a_notice_of_processor_time_may_come_often(quern, made, tmp_path):
    process = subprocess.Popen([quern, *made[1], "--epochs", "1000000", "--checkpoint", "c", "-o", "m"], cwd=tmp_path,
                               preexec_fn=attentive, stderr=subprocess.PIPE, text=True)
    try:
        while not checkpoints(tmp_path / "c"):
            time.sleep(0.002)
        for _ in range(5):
            process.send_signal(signal.SIGXCPU)
        assert "state saved in c" in process.communicate(timeout=60)[1] and process.returncode == 130
    finally:
        process.kill()


@pytest.mark.parametrize("size", [64, 128])
def test_a_small_stack(quern, made, tmp_path, size):
    words = [*made[1], "--epochs", 2, "-o", "m"]
    done = limited(quern, words, tmp_path, STACK=size * 1024)
    assert done.returncode == 0 and digest(tmp_path / "m") == digest(made[0] / "m"), done
    done = limited(quern, ["predict", made[0] / "m", "--data", made[0] / "t.csv", "-o", "p.csv", "--quiet"], tmp_path,
                   STACK=size * 1024)
    assert done.returncode == 0, done


def test_quiet_is_not_silent_about_lost_checkpoints(quern, made, tmp_path):
    words = [*made[1], "--epochs", 2, "--checkpoint", "c", "--checkpoint-every", 1, "-o", tmp_path / "m"]
    done = limited(quern, words, tmp_path, FSIZE=50_000)  # the model is smaller
    assert done.returncode == 0 and digest(tmp_path / "m") == digest(made[0] / "m"), done
    first, last = done.stderr.splitlines()
    assert first.startswith("note: cannot write c/checkpoint-") and "continues without a checkpoint" in first
    assert "there is no good checkpoint" in last


def test_a_file_of_runs_that_cannot_grow_is_not_left_empty(quern, made, tmp_path):
    words = [*made[1], "--epochs", 2, "--runs", "runs", "-o", "m"]
    done = limited(quern, words, tmp_path, FSIZE=0)
    assert done.returncode == 1 and "SQLite says" in done.stderr and not os.listdir(tmp_path), done
    (tmp_path / "runs").write_bytes(b"")  # somebody's own
    limited(quern, words, tmp_path, FSIZE=0)
    assert os.listdir(tmp_path) == ["runs"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_a_signal_while_a_kernel_is_compiled(quern, tmp_path, number):
    """The compiler ends, and what it had written is taken away."""
    temporary, compiler = tmp_path / "tmp", tmp_path / "compiler"
    temporary.mkdir()
    compiler.write_text(f'#!/bin/sh\n: >"$TMPDIR/cc1234.s"\necho $$ >{tmp_path}/pid\nkill -{int(number)} $PPID\n'
                        'sleep 1000 &\nwait\n')
    compiler.chmod(0o755)
    (tmp_path / "k.c").write_text("INDEX(i); INPUT(double, x); SUM(double, all); KERNEL { all = x; }\n")
    numpy.save(tmp_path / "x.npy", numpy.ones(3))
    done = subprocess.run([quern, "run", "--kernel", "k.c", "--in", "x=x.npy"], cwd=tmp_path, preexec_fn=attentive,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60 * machine.PATIENCE,
                          env={**os.environ, "CC": str(compiler), "TMPDIR": str(temporary),
                               "QUERN_CACHE": str(tmp_path / "cache")})
    assert done.returncode == 130 and not os.listdir(temporary)
    group, end = int((tmp_path / "pid").read_text()), time.monotonic() + 60

    def lives():
        """A process of the group that was not waited for is dead all the same."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, its = stat.read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(its) == group and state != "Z":
                return True
        return False

    while lives():
        assert time.monotonic() < end, "the compiler goes on"
        time.sleep(0.01)
