"""OpenCL devices: PoCL, which makes one of any processor, and an OpenCL library with faults over
it (tests/fake_opencl) for what a real device cannot be made to do. Without PoCL, the tests that
compute are skipped."""

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

import builds
import machine
import ranks
import recipes
from devices import compile_once

NAME = r"opencl:0 \([^)]+.*\)"
FEW = ["tanh-mse-sgd", "dropout", "adamw", "cosine-warmup", "batch-50-grain-7",
       "decimals-standard"]


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def devices(listed, kind="opencl"):
    return [e for e in listed if e["event"] == "device" and e["kind"] == kind]


def absence(listed):
    return [e["reason"] for e in listed if e["event"] == "absence" and e["kind"] == "opencl"][0]


@pytest.fixture(scope="session")
def real():
    """The path of the real OpenCL library."""
    path = os.environ["PATH"] + ":/sbin:/usr/sbin"
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                           env=dict(os.environ, PATH=path)).stdout
    found = re.findall(r"^\s*libOpenCL\.so\.1 .*=> (\S+)", known, re.M)
    if not found:
        pytest.skip("no libOpenCL.so.1 here; scripts/setup.sh says how to get it")
    return found[0]


@pytest.fixture(scope="session")
def pocl(real, run_quern):
    """Skips where PoCL is not installed."""
    listed = events(run_quern("devices", "--json", "--measure", "none").stdout)
    if "Portable Computing Language" not in [d["platform"] for d in devices(listed)]:
        pytest.skip("PoCL is not installed; scripts/setup.sh says how to get it")
    if "QUERN_TEST_BUILDS" in os.environ:
        compile_once("opencl:0")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of programs of the test's own."""
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def bare(quern):
    """bare("platforms=0") -> the environment for faults that need nothing real under them."""
    folder = builds.beside(quern, "fakes", "fake_opencl")

    def environment(plan="", part=""):
        return dict(os.environ, LD_LIBRARY_PATH=str(folder / part), QN_FAKE_OPENCL=plan)

    return environment


@pytest.fixture
def fake(bare, real, pocl):
    """fake("launch=3") -> the environment for a fault over PoCL."""
    return lambda plan="", **more: dict(bare(plan), QN_REAL_OPENCL=real, **more)


# ---------------------------------------------------------------- what is there

def test_pocl_is_listed(run_quern, pocl):
    listed = events(run_quern("devices", "--json", "--devices", "opencl:all").stdout)
    for i, device in enumerate(devices(listed)):
        assert device["id"] == f"opencl:{i}" and device["cores"] > 0 and device["driver"]
        assert device["memory"] > 1 << 20 and device["name"].strip() == device["name"] != ""
    ours = [d for d in devices(listed) if d["platform"] == "Portable Computing Language"][0]
    assert ours["type"] == "CPU" and ours["refused"] is False and ours["automatic"] is False
    assert ours["reason"] == "the same cores as the device cpu"
    assert min(ours["matmul_flop_per_s"], ours["tanh_per_s"], ours["copy_bytes_per_s"]) > 1e5
    assert ours["matmul_i14_op_per_s"] > 1e5
    assert ours["integers_by"] in ("plain", "cl_khr_integer_dot_product")


@pytest.mark.parametrize("plan, part, says, remedy", [
    ("platforms=0", "", "has no platform", "install the OpenCL driver"),
    ("devices=0", "", "OpenCL is here (An empty platform), but no device", "group render"),
    ("", "bare", "has no clGetPlatformInfo", "ocl-icd-libopencl1"),
    ("", "broken", "there is no OpenCL library", "ocl-icd-libopencl1"),
])
def test_absence_is_explained(run_quern, bare, tmp_path, plan, part, says, remedy):
    env = bare(plan, part)
    listed = events(run_quern("devices", "--json", "--measure", "none", env=env).stdout)
    assert not devices(listed)
    assert says in absence(listed) and remedy in absence(listed)
    done = run_quern("train", *recipes.DIGITS, "--devices", "opencl:0", "-o", tmp_path / "model", env=env,
                     status=None)
    assert done.returncode not in (0, -6, -11) and says in done.stderr


@pytest.mark.parametrize("plan, automatic, reason", [
    ("gpu=1", True, ""),
    ("accelerator=1", True, ""),
    ("gpu=1,nvidia=1", True, ""),  # without CUDA, NVIDIA's OpenCL will do
])
def test_who_is_automatic(run_quern, fake, plan, automatic, reason):
    listed = events(run_quern("devices", "--json", "--measure", "none", env=fake(plan)).stdout)
    device = devices(listed)[0]
    assert device["automatic"] is automatic and device["reason"] == reason


def test_cuda_comes_first(run_quern, fake, quern):
    cuda = builds.beside(quern, "fakes", "fake_gpu")
    env = fake("gpu=1,nvidia=1")
    env["LD_LIBRARY_PATH"] += f":{cuda}"
    listed = events(run_quern("devices", "--json", "--measure", "none", env=env).stdout)
    assert devices(listed, "cuda")
    assert devices(listed)[0]["automatic"] is False
    assert devices(listed)[0]["reason"] == "a GPU of NVIDIA, which cuda drives"


@pytest.mark.parametrize("plan, says", [
    ("version=11", "OpenCL 1.1 of the fake, and 1.2 is needed"),
    ("available=0", "not available; another program may hold it"),
    ("compiler=0", "no compiler for OpenCL C"),
    ("embedded=1", "no 64-bit integers"),
    ("embedded=2", "embedded profile alone"),
    ("denormals=0", "flushes subnormal numbers to zero, as its driver says"),
    ("endian=0", "its byte order is not that of this machine"),
])
def test_refused_as_the_driver_says(run_quern, fake, tmp_path, plan, says):
    env = fake("gpu=1," + plan)
    listed = events(run_quern("devices", "--json", "--measure", "none", env=env).stdout)
    device = devices(listed)[0]
    assert device["refused"] is True and device["automatic"] is False
    assert says in device["reason"]
    done = run_quern("train", *recipes.DIGITS, "--devices", "opencl:0", "-o", tmp_path / "model", env=env,
                     status=None)
    assert done.returncode not in (0, -6, -11) and says in done.stderr


# What a driver does not say is found when the device is opened.
@pytest.mark.parametrize("plan, says, remedy", [
    pytest.param("flush=1", "it flushes subnormal numbers to zero", "newer driver", marks=machine.LONG),
    ("fma=0", "has no fma of its own or a wrong one: it rounds twice", "newer driver"),
    pytest.param("wrong=1", "it rounds 64-bit integers to numbers wrongly", "newer driver",
                 marks=machine.LONG),
    ("groups=32", "in groups of at most 32, and 128 are needed", "leave it out"),
    ("build=1", "CL_BUILD_PROGRAM_FAILURE: program:7:1: error: the fake dislikes this",
     "newer driver"),
    ("kernel=1", "failed to give the kernel qn_", "newer driver"),
    ("context=2", "failed to open: CL_DEVICE_NOT_AVAILABLE", "another program may hold it"),
    ("context=6", "failed to open: CL_OUT_OF_HOST_MEMORY", "end other programs"),
    ("alloc=1", "failed to make memory for copies: CL_MEM_OBJECT_ALLOCATION_FAILURE",
     "end other programs"),
    ("alloc=5", "has no space for", "end other programs"),
    ("launch=2", "failed to run qn_trial: CL_OUT_OF_RESOURCES", "end other programs"),
    ("read=3", "failed to copy from the device: CL_OUT_OF_RESOURCES", "end other programs"),
    ("write=2", "failed to copy to the device: CL_OUT_OF_RESOURCES", "end other programs"),
    ("event=3", "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", "update its driver"),
    ("remove=3", "failed to", "leave it out"),
    ("hang=4", "hangs: it was given 1 seconds", "--device-timeout"),
])
def test_what_fails_at_open_is_told(run_quern, fake, tmp_path, plan, says, remedy):
    limit = 1 if plan.startswith("hang") else 60
    done = run_quern("train", *recipes.DIGITS, "--devices", "opencl:0", "--device-timeout", limit,
                     "-o", tmp_path / "model", env=fake(plan), status=None)
    assert done.returncode not in (0, -6, -11)
    text = done.stderr.replace("\n  ", " ")
    assert re.search(NAME, text) and says in text and remedy in text, text


def test_a_stopped_process_has_not_waited(quern, pocl, tmp_path):
    """Ctrl-Z, for longer than the time limit of a device, in the middle of its work. On a busy machine
    a device may take half a second for a step, or even too long: one good run of several is enough."""
    words = ["train", "--devices", "opencl:0", "--device-timeout", "2", "--model", "dense 300 tanh; dense 10 softmax",
             "--epochs", "1", "--json", "-o", str(tmp_path / "m")]
    for _ in range(3):
        with subprocess.Popen([quern, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert '"start"' in process.stdout.readline()
            for _ in range(2):
                process.send_signal(signal.SIGSTOP)
                time.sleep(2.3)
                process.send_signal(signal.SIGCONT)
                time.sleep(0.05)
            said = process.stdout.read()
        if process.returncode == 0:
            break
    assert process.returncode == 0, said


# ---------------------------------------------------------------- the cache of programs

def measured(run_quern, env):
    """The device's matmul rate, None when it failed; and what was noted."""
    done = run_quern("devices", "--json", "--devices", "opencl:0", env=env)
    listed = events(done.stdout)
    notes = [e["text"] for e in listed if e["event"] == "note"]
    return devices(listed)[0]["matmul_flop_per_s"], notes


def test_a_built_program_is_kept(run_quern, fake, cache):
    assert measured(run_quern, fake("binaries=1,source=1"))[0] is None
    rate, notes = measured(run_quern, fake("binaries=1"))
    assert rate and not notes
    kept = [f for f in cache.iterdir() if f.is_file()]
    assert len(kept) == 1 and kept[0].stat().st_mode & 0o777 == 0o600
    assert measured(run_quern, fake("binaries=1,source=1"))[0]  # the text is not needed any more


@machine.LONG
def test_other_options_are_another_program(run_quern, fake, cache):
    """It is kept before the device fails, which saves compiling kernels."""
    assert measured(run_quern, fake("binaries=1,launch=1"))[0] is None
    assert measured(run_quern, fake("binaries=1,atomics=0,launch=1"))[0] is None
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("plan", ["binary=1", "binary=2"])
@machine.LONG
def test_a_binary_that_is_not_taken_is_built_again(run_quern, fake, cache, plan):
    assert measured(run_quern, fake("binaries=1"))[0]
    assert measured(run_quern, fake("binaries=1," + plan))[0]
    assert measured(run_quern, fake("binaries=1,source=1"))[0]


@machine.LONG
def test_a_broken_file_is_told_and_mended(run_quern, fake, cache):
    env = fake("binaries=1")
    assert measured(run_quern, env)[0]
    kept = next(cache.iterdir())
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 1
    kept.write_bytes(data)
    rate, notes = measured(run_quern, env)
    assert rate and len(notes) == 1 and "ignored" in notes[0]
    rate, notes = measured(run_quern, env)
    assert rate and not notes


def test_pocl_keeps_its_own(run_quern, fake, cache):
    assert measured(run_quern, fake())[0]
    assert not cache.exists()


# ---------------------------------------------------------------- the same bytes

@pytest.fixture(scope="session")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


def train(run_quern, name, files, out, *more, **how):
    words = [w.format(**files) for w in shlex.split(recipes.RECIPES[name])]
    return run_quern("train", *words, *more, "-o", out, **how)


def same_bytes(out, name):
    assert hashlib.sha256(out.read_bytes()).hexdigest() == recipes.table()[name]


# The second device has other capabilities, for which PoCL compiles all kernels once more.
@pytest.mark.parametrize("plan", ["", pytest.param("gpu=1,divide=0,atomics=0,memory=64", marks=machine.LONG)])
def test_a_device_alone(run_quern, fake, files, tmp_path, plan):
    """The kernels for processors, and those for GPUs on one that lacks everything that they can do
    without. One after the other: the second finds what was compiled for the first."""
    out = tmp_path / "model"
    for name in FEW[:2]:
        train(run_quern, name, files, out, "--devices", "opencl:0", env=fake(plan))
        same_bytes(out, name)


def test_new_memory_is_full_of_nan(run_quern, fake, files, tmp_path):
    """No kernel reads what nobody has written: these would be NaNs, and integers of -1."""
    out = tmp_path / "model"
    for name in ("adamw", "i14-tanh-mse", "batchnorm-dense"):
        train(run_quern, name, files, out, "--devices", "opencl:0", env=fake("fill=1"))
        same_bytes(out, name)


@pytest.mark.parametrize("plan, says", [pytest.param("dots=2", "it multiplies packed bytes wrongly", marks=machine.LONG),
                                        pytest.param("dots=3", "", marks=machine.LONG),
                                        pytest.param("dots=4", "failed to run qn_trial: CL_OUT_OF_RESOURCES",
                                                     marks=machine.LONG)])
def test_products_of_bytes_are_tried(run_quern, fake, files, tmp_path, plan, says):
    """A device that has them uses them; one that has wrong ones goes on without, and says so."""
    out = tmp_path / "model"
    done = train(run_quern, "i14-tanh-mse", files, out, "--devices", "opencl:0",
                 env=fake("gpu=1," + plan))
    same_bytes(out, "i14-tanh-mse")
    text = done.stderr.replace("\n  ", " ")
    assert ("goes on without cl_khr_integer_dot_product" in text) == bool(says), text
    assert says in text


@machine.LONG
def test_products_of_bytes_are_barred(run_quern, fake, files, tmp_path):
    """With --gpu-isa plain they do not run: these would fail."""
    out = tmp_path / "model"
    done = train(run_quern, "i14-tanh-mse", files, out, "--devices", "opencl:0", "--gpu-isa",
                 "plain", env=fake("gpu=1,dots=4"))
    same_bytes(out, "i14-tanh-mse")
    assert "goes on without" not in done.stderr, done.stderr


@pytest.mark.parametrize("kinds", ["pthread pthread", pytest.param("basic pthread", marks=machine.LONG)])
@pytest.mark.parametrize("how", [["--devices", "opencl:all"],
                                 ["--devices", "opencl:0,opencl:1", "--shares", "1,3"],
                                 ["--devices", "cpu,opencl:all", "--shares", "1,2,1"]])
def test_two_devices_at_once(run_quern, pocl, files, tmp_path, monkeypatch, kinds, how):
    monkeypatch.setenv("POCL_DEVICES", kinds)
    out = tmp_path / "model"
    train(run_quern, "dropout", files, out, *how)
    same_bytes(out, "dropout")


# ---------------------------------------------------------------- failures in mid-job

# The self-test launches 19 kernels; these faults come after it, in the steps.
@pytest.mark.parametrize("plan", ["launch=60", "launch=75", "read=60", "write=40", "event=60",
                                  "remove=60", "hang=60"])
def test_a_lost_device_changes_nothing(run_quern, fake, files, tmp_path, plan):
    out = tmp_path / "model"
    done = train(run_quern, "dropout", files, out, "--devices", "cpu,opencl:0", "--shares", "1,1",
                 "--device-timeout", 2 if "hang" in plan else 60, env=fake(plan))
    same_bytes(out, "dropout")
    assert "worker opencl:0 failed" in done.stderr, done.stderr
    assert ("hangs" if plan.startswith("hang") else "CL_") in done.stderr


def test_no_worker_is_left(run_quern, fake, files, tmp_path):
    out = tmp_path / "model"
    done = train(run_quern, "dropout", files, out, "--devices", "opencl:0", env=fake("launch=60"),
                 status=None)
    assert done.returncode not in (0, -6, -11)
    assert "no worker is left" in done.stderr and not out.exists()


@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_without_a_worker_leaves(quern, fake, files, tmp_path, who):
    """The others do all of it; the one that leaves says why, and keeps nobody waiting."""
    out = tmp_path / "model"
    words = [a.format(**files) for a in shlex.split(recipes.RECIPES["dropout"])]
    own = {i: ["--devices", "opencl:0" if i == who else "cpu"] for i in range(3)}
    done = ranks.run(quern, 3, "train", *words, "--threads", 1, "-o", out, own=own, timeout=60,
                     env=fake("launch=60"))
    same_bytes(out, "dropout")
    assert f"rank {who} on" in done[who][2]
    assert "no worker is left" in done[who][2] and "continue without this one" in done[who][2]


# ---------------------------------------------------------------- the suite

@machine.LONG
def test_conformance_without_what_may_lack(quern, fake):
    """Over PoCL as it is the suite runs elsewhere; here over a device that neither divides
    correctly nor adds 64-bit integers atomically."""
    program = builds.beside(quern, "test.device.conformance", "tests/device.conformance")
    env = fake("gpu=1,divide=0,atomics=0", QN_TEST_CASES="10", QN_TEST_SEED="1000")
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
