"""The devices of a machine as its user meets them: `quern devices`, and --devices of the commands
that compute. Libraries that a machine lacks or has are stood in for by fakes where that is said."""

import json
import os
import re

import pytest


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def of(kind, listed):
    return [e for e in listed if e["event"] == kind]


# ---------------------------------------------------------------- the list

def test_the_cpu_is_measured(run_quern):
    cpu = of("device", events(run_quern("devices", "--json", "--devices", "cpu").stdout))[0]
    assert cpu["id"] == cpu["kind"] == "cpu" and cpu["type"] == "CPU" and cpu["index"] == 0
    assert cpu["automatic"] is True and cpu["refused"] is False and cpu["reason"] == ""
    assert 1 <= cpu["cores"] <= os.cpu_count() and cpu["memory"] > 1 << 20
    for key in "matmul_flop_per_s tanh_per_s copy_bytes_per_s".split():
        assert cpu[key] > 1e5, key


def test_measured_or_not(run_quern):
    listed = of("device", events(run_quern("devices", "--json", "--measure", "none").stdout))
    for device in listed:
        assert device["matmul_flop_per_s"] is device["tanh_per_s"] is None
        assert device["copy_bytes_per_s"] is None
    assert len({d["id"] for d in listed}) == len(listed)


def test_the_table_is_readable(run_quern):
    text = run_quern("devices").stdout
    lines = text.splitlines()
    assert lines[0].split() == "device type units memory matmul tanh copy name".split()
    assert re.match(r"cpu +CPU +\d+ +[\d.]+ [KMGT]iB +[\d.]+ [kMGT]?FLOP/s ", lines[1]), text
    assert re.search(r"^ +takes \w+; has .*scalar", text, re.M)
    # What is not there is told with a reason, each kind in a line of its own.
    listed = events(run_quern("devices", "--json", "--measure", "none").stdout)
    for kind in ("cuda", "opencl"):
        here = [d for d in of("device", listed) if d["kind"] == kind]
        absent = [a for a in of("absence", listed) if a["kind"] == kind]
        assert bool(here) != bool(absent)
        assert bool(absent) == bool(re.search(rf"^no {kind} +\S.{{20,}}", text, re.M))


# ---------------------------------------------------------------- would a run use them

@pytest.mark.parametrize("words, says", [
    (["--features", "3"], "--features stands without --model"),
    (["--batch", "3"], "--batch stands without --model"),
    (["--model", "dense 3 softmax", "--seconds", "0"], "from 0.1 to 3600"),
    (["--model", "dens 3 softmax"], "dens"),
    (["--devices", "none"], "no device is left"),
    (["--measure", "some"], "auto|all|none"),
])
def test_bad_usage(run_quern, words, says):
    done = run_quern("devices", "--measure", "none", *words, status=2) \
        if "--measure" not in words else run_quern("devices", *words, status=2)
    assert says in done.stderr


# ---------------------------------------------------------------- --devices in a run

SMALL = ["--model", "dense 12 tanh; dense 10 softmax", "--epochs", "1", "--quiet"]


@pytest.mark.parametrize("how", [["--devices", "cpu"], ["--devices", "cpu:1"],
                                 ["--devices", "cpu:all", "--threads", "2"],
                                 ["--devices", "auto", "--device-timeout", "5"],
                                 ["--devices", "cpu", "--shares", "1"]])
def test_who_computes_does_not_matter(run_quern, tmp_path, how):
    plain, other = tmp_path / "plain", tmp_path / "other"
    run_quern("train", *SMALL, "--devices", "cpu", "--threads", 1, "-o", plain)
    run_quern("train", *SMALL, *how, "-o", other)
    assert plain.read_bytes() == other.read_bytes()
    assert b"devices" not in other.read_bytes()[:4096]
