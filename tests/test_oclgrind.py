"""The kernels for OpenCL in Oclgrind, a simulator that sees each access to memory.

It reports data races between lanes and accesses outside of an array. Quern opens it as any other
device of OpenCL: nothing of the kernels or of their self-tests is replaced, but of the self-test's
cases one in 61 is computed, and qn__cl_is_simulated says what else differs.
"""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import builds
import machine
import recipes
from device_kernels import BINS, heat

pytestmark = machine.LONG

LIBRARIES = ["/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so"]


FOUND = re.compile(r"^.*(?:Invalid (?:read|write)|data race|OCLGRIND FATAL|divergence).*(?:\n.*){0,8}", re.M | re.I)


@pytest.fixture(scope="session")
def simulator(tmp_path_factory):
    """The environment in which Oclgrind is the only device of OpenCL."""
    library = next((path for path in LIBRARIES if Path(path).exists()), None)
    if not library:
        pytest.skip("oclgrind not installed; scripts/setup.sh says how to get it")
    return {**os.environ, "OCL_ICD_VENDORS": library, "OCL_ICD_FILENAMES": library, "OCLGRIND_DATA_RACES": "1",
            "OCLGRIND_MAX_ERRORS": "20", "OCLGRIND_GLOBAL_MEM_SIZE": str(1 << 30),
            "QUERN_CACHE": str(tmp_path_factory.mktemp("cache")), "QN_TEST_DEVICE": "opencl:0", "QN_TEST_TIMEOUT": "3000"}


def clean(words, environment, folder=None):
    """The output of a command in which the simulator found nothing."""
    with builds.untimed():
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=environment, cwd=folder,
                              timeout=3600)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-4000:]
    found = FOUND.search(said)
    assert not found, found[0]
    return done


def test_faults_are_seen(simulator, tmp_path):
    """What FOUND looks for is what the simulator says."""
    builds.require("oclgrind-kernel")
    kernels = {"race": "o[0] = get_global_id(0);", "bound": "o[get_global_id(0) + 100] = 1;",
               "diverge": "if (get_local_id(0) < 3) barrier(CLK_LOCAL_MEM_FENCE); o[get_global_id(0)] = 1;"}
    (tmp_path / "k.cl").write_text("".join(f"kernel void {name}(global uint *o) {{ {body} }}\n"
                                           for name, body in kernels.items()))
    for name in kernels:
        (tmp_path / "k.sim").write_text(f"k.cl\n{name}\n8 1 1\n8 1 1\n<size=64 uint fill=3>\n")
        done = subprocess.run(["oclgrind-kernel", "--data-races", "k.sim"], cwd=tmp_path, capture_output=True, text=True,
                              env=simulator)
        assert FOUND.search(done.stdout + done.stderr), (name, done)


@pytest.fixture(scope="session")
def files(quern, tmp_path_factory):
    """Ten items for each recipe: the simulator takes a second for some millions of instructions."""
    folder = tmp_path_factory.mktemp("data")
    subprocess.run([quern, "data", "synth", "digits", "--items", "10", "-o", folder / "i.idx",
                    "--labels", folder / "l.idx"], check=True, capture_output=True)
    return {"images": folder / "i.idx", "labels": folder / "l.idx"}


def test_the_device_is_there(quern, simulator):
    rows = [json.loads(line) for line in clean([quern, "devices", "--json", "--measure", "none"],
                                               simulator).stdout.splitlines()]
    assert [row["platform"] for row in rows if row.get("id") == "opencl:0"] == ["Oclgrind"]


@pytest.mark.parametrize("seed", range(1, 17))
def test_kernels_for_gpus(quern, simulator, seed):
    """Random networks by the kernels for GPUs, each launch beside the same text as C."""
    program = builds.beside(quern, "test.tests.gpu_kernels", "tests/tests.gpu_kernels")
    clean([program], {**simulator, "QN_TEST_SEED": str(seed), "QN_TEST_CASES": "1"})


@pytest.mark.parametrize("model, more", [
    ("dense 20 tanh dropout 0.2; dense 10 softmax", ""), ("dense 20 relu; dense 10 softmax", "--arith i14"),
    ("conv 3 5x5 stride 4 relu; maxpool 2; batchnorm; dense 10 softmax", ""),
    ("conv 4 3x3 stride 6 relu; residual { conv 4 1x1; groupnorm 2 } relu; globalpool; dense 10 softmax", "--arith i7")])
def test_kernels_for_processors(quern, simulator, files, tmp_path, model, more):
    """The vector kernels, as PoCL has them: the bytes of the processor."""
    words = [quern, "train", "--data", files["images"], "--labels", files["labels"], "--model", model, "--batch", "5",
             "--grain", "2", "--epochs", "1", "--lr", "0.05", "--momentum", "0.9", *shlex.split(more), "-o"]
    subprocess.run([str(w) for w in [*words, tmp_path / "cpu", "--devices", "cpu"]], check=True, capture_output=True)
    clean([*words, tmp_path / "simulated", "--devices", "opencl:0", "--device-timeout", "3000"], simulator)
    assert recipes.sha256(tmp_path / "simulated") == recipes.sha256(tmp_path / "cpu")


@pytest.mark.parametrize("text, words", [
    (BINS, ["--in", "n=n.npy", "--in", "f=f.npy", *(w for o in ("wide", "often", "running", "low", "place", "before", "three")
                                                    for w in ("--out", f"{o}={o}.npy"))]),
    (heat("x", "wrap", [(-1,), (1,)]), ["--in", "u=f.npy", "--in", "q=f.npy", "--iterations", "3", "--out", "v=v.npy",
                                        "--out", "r=r.npy"])])
def test_kernels_of_users(quern, simulator, tmp_path, text, words):
    numpy = pytest.importorskip("numpy")
    draw = numpy.random.default_rng(5)
    numpy.save(tmp_path / "n.npy", draw.integers(-99, 99, 300, "int32"))
    numpy.save(tmp_path / "f.npy", draw.standard_normal(300).astype("float32"))
    (tmp_path / "k.c").write_text(text)
    run = [quern, "run", "--kernel", "k.c", *words, "--json", "--devices"]
    want = subprocess.run([*run, "cpu"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    got = clean([*run, "opencl:0", "--device-timeout", "3000"], simulator, tmp_path).stdout
    results = [json.loads(next(line for line in text.splitlines() if line.startswith("{")))["results"] for text in (want, got)]
    assert results[0] == results[1]


def test_statistics(quern, simulator, tmp_path):
    numpy = pytest.importorskip("numpy")
    numpy.save(tmp_path / "t.npy", numpy.random.default_rng(5).standard_normal((40, 3)).astype("float32"))
    words = [quern, "data", "stats", "t.npy", "--unlabelled", "--json", "--histograms", "--correlation", "--devices"]
    want = subprocess.run([*words, "cpu"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert clean([*words, "opencl:0"], simulator, tmp_path).stdout == want
