"""The kernels for OpenCL in Oclgrind, a simulator that sees each access to memory.

It reports data races between lanes, accesses outside of an array, and values that depend on memory
that nobody wrote. Quern opens it as any other device of OpenCL: nothing of the kernels or of their
self-tests is replaced, but of the self-test's cases one in 61 is computed, and qn__cl_is_simulated says
what else differs.

New memory is filled with 0xff: arrays of the device, local arrays and variables of lanes. No define of
the kernels' text could do this for all of them, so a preloaded library does it in the simulator
(tests/fake_opencl/oclgrind_memory.c). It also mends the notes of what was written, which without it
report arrays that the host writes in parts. Since the worker clears its arrays before use, padding that
kernels read is written memory.
"""

import json
import os
import random
import re
import shlex
import struct
import subprocess
from pathlib import Path

import pytest

import builds
import machine
import recipes
from device_kernels import BINS, MANY, SMALL, heat

pytestmark = machine.LONG

LIBRARIES = ["/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so"]
GPU_LIBRARIES = [path.replace("-icd", "") for path in LIBRARIES]  # the simulator without a loader

FOUND = re.compile(r"^.*(?:Invalid (?:read|write)|data race|OCLGRIND FATAL|divergence|uninitialized).*(?:\n.*){0,8}",
                   re.M | re.I)


@pytest.fixture(scope="session")
def filled(quern, tmp_path_factory):
    """The environment in which Oclgrind is the only device of OpenCL, and new memory is 0xff."""
    library = next((path for path in LIBRARIES if Path(path).exists()), None)
    if not library:
        pytest.skip("oclgrind not installed; scripts/setup.sh says how to get it")
    return {**os.environ, "OCL_ICD_VENDORS": library, "OCL_ICD_FILENAMES": library, "OCLGRIND_DATA_RACES": "1",
            "OCLGRIND_MAX_ERRORS": "20", "OCLGRIND_GLOBAL_MEM_SIZE": str(1 << 30), "OCLGRIND_COMPUTE_UNITS": "1",
            "LD_PRELOAD": str(builds.beside(quern, "fakes", "fake_opencl") / "oclgrind_memory.so"),
            "QUERN_CACHE": str(tmp_path_factory.mktemp("cache")), "QN_TEST_DEVICE": "opencl:0", "QN_TEST_TIMEOUT": "3000"}


@pytest.fixture(scope="session")
def simulator(filled):
    """It also reports what depends on memory that nobody wrote, which takes one thread and three times as
    long."""
    return {**filled, "OCLGRIND_UNINITIALIZED": "1", "OCLGRIND_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def as_gpu(quern, simulator):
    """Oclgrind is a processor, for which Quern takes the vector kernels. Here it calls itself a GPU."""
    real = next((path for path in GPU_LIBRARIES if Path(path).exists()), None)
    return {**simulator, "LD_LIBRARY_PATH": str(builds.beside(quern, "fakes", "fake_opencl")), "QN_REAL_OPENCL": str(real),
            "QN_FAKE_OPENCL": "gpu=1"}


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
               "diverge": "if (get_local_id(0) < 3) barrier(CLK_LOCAL_MEM_FENCE); o[get_global_id(0)] = 1;",
               "local_array": "local uint a[16]; o[get_global_id(0)] = a[get_local_id(0)];",
               "variable": "uint a[4]; o[get_global_id(0)] = a[get_local_id(0) & 3];",
               "array": "o[get_global_id(0)] = p[get_global_id(0)];",
               "right": "local uint a[8]; p[get_global_id(0)] = a[get_local_id(0)] = 1; "
                        "o[get_global_id(0)] = a[get_local_id(0)] + p[get_global_id(0)];"}
    (tmp_path / "k.cl").write_text("".join(f"kernel void {name}(global uint *o, global uint *p) {{ {body} }}\n"
                                           for name, body in kernels.items()))
    for name in kernels:
        (tmp_path / "k.sim").write_text(f"k.cl\n{name}\n8 1 1\n8 1 1\n<size=64 uint fill=3 dump>\n<size=64 uint noinit>\n")
        words = ["oclgrind-kernel", "--build-options", "-O1 -disable-llvm-passes", "k.sim"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=simulator)
        assert bool(FOUND.search(done.stdout + done.stderr)) == (name != "right"), (name, done)
        if name in ("local_array", "variable", "array"):
            assert "uninitialized" in done.stderr.lower() and "o[7] = 4294967295" in done.stdout, (name, done)


def test_the_device_is_there(quern, simulator):
    rows = [json.loads(line) for line in clean([quern, "devices", "--json", "--measure", "none"],
                                               simulator).stdout.splitlines()]
    assert [row["platform"] for row in rows if row.get("id") == "opencl:0"] == ["Oclgrind"]


@pytest.mark.parametrize("seed", range(1, 17))
def test_kernels_for_gpus(quern, filled, seed):
    """Random networks by the kernels for GPUs, each launch beside the same text as C."""
    program = builds.beside(quern, "test.tests.gpu_kernels", "tests/tests.gpu_kernels")
    clean([program], {**filled, "QN_TEST_SEED": str(seed), "QN_TEST_CASES": "1"})


# The smallest networks that reach every kernel. With one compute unit, 66 rows and 97 columns take
# the large tiles of a product of floats, 33 columns the medium ones, and the large ones of integers and
# of gradients.
WIDE = ("--data wide.csv --label kind --batch 66 --grain 20 --optimizer momentum --nesterov --model 'dense 97 relu; "
        "dense 3 tanh; dense 33 sigmoid; dense 33 relu dropout 0.2; dense 3 softmax' ")
INTEGERS = ("--data half.csv --label kind --batch 34 --grain 20 --model 'dense 33 relu; dense 33 tanh; dense 3; "
            "dense 3 softmax' ")
REAL = "--data real.csv --label y --batch 8 --grain 3 "
PICTURES = "--data i.idx --labels l.idx --batch 5 --grain 2 "
TRAININGS = {
    "f32": WIDE,
    "i7": INTEGERS + "--arith i7",
    "i14": INTEGERS + "--arith i14",
    "i21": INTEGERS + "--arith i21",
    "mse": REAL + "--model 'dense 20 leaky_relu; dense 1' --loss mse --optimizer sgd",
    "mae": REAL + "--model 'dense 20 gelu; dense 1' --loss mae --optimizer adam",
    "huber": REAL + "--model 'dense 20 silu; dense 1' --loss huber --optimizer adamw --weight-decay 0.1",
    "binary": "--data two.csv --label kind --batch 8 --grain 3 --class-weight balanced --loss binary --optimizer momentum "
              "--model 'dense 20 relu; dense 1 sigmoid'",
    "shared": REAL + "--model 'dense 20 relu; dense 1' --loss mse --shares 1,2",
    "layers": PICTURES + "--optimizer adam --model 'conv 4 3x3 relu; batchnorm relu; maxpool 2; residual { conv 4 1x1; "
              "groupnorm 2 } relu; conv 4 3x3 groups 2; layernorm dropout 0.2; avgpool 2; dense 3 softmax'",
    "windows": PICTURES + "--scale fraction --model 'conv 3 3x3 stride 2 relu; conv 2 2x2 pad none tanh; globalpool; "
               "dense 3 softmax'",
    "pixels i14": PICTURES + "--model 'maxpool 2; conv 4 3x3 relu; conv 4 3x3 relu; dense 3 softmax' --arith i14"}


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A few items: the simulator takes a second for a million instructions."""
    folder, draw = tmp_path_factory.mktemp("data"), random.Random(3)
    for name, label, items, kinds in (("wide", "kind", 66, "xyz"), ("half", "kind", 34, "xyz"), ("two", "kind", 12, "xy"),
                                      ("real", "y", 12, None)):
        rows = [[f"{draw.gauss(0, 1):.4g}" for _ in range(3)] + [kinds[i % len(kinds)] if kinds else f"{draw.gauss(0, 1):.4g}"]
                for i in range(items)]
        (folder / f"{name}.csv").write_text("\n".join(map(",".join, [["a", "b", "c", label], *rows])) + "\n")
    (folder / "i.idx").write_bytes(struct.pack(">HBBIII", 0, 8, 3, 7, 6, 6) + draw.randbytes(7 * 36))
    (folder / "l.idx").write_bytes(struct.pack(">HBBI", 0, 8, 1, 7) + bytes(i % 3 for i in range(7)))
    return folder


def kernels_of(kind):
    """The kernels of the list that a device takes which is a processor ("vectors") or a GPU."""
    text = (builds.ROOT / "src" / "kernels" / "training" / "kernel_list.h").read_text()
    names = set(re.findall(r"^    ROW\(\w+, (\w+),", text, re.M))
    vectors = {name for name in names if name.endswith("_vector")}
    integers = {f"intgemm_{product}_{bits}_{tile}" for product in ("forward", "errors", "gradient") for bits in ("i7", "i14", "i21")
                for tile in ("large", "small")}
    floats = {name for name in names if re.fullmatch(r"(forward|errors|gradient)_(large|medium|small)", name)}
    replaced = {name.removesuffix("_vector") for name in vectors} - {"map"}
    return (names - floats - replaced if kind == "vectors" else names - vectors) | integers


@pytest.mark.parametrize("kind", ["gpu", "vectors"])
def test_trainings(quern, simulator, as_gpu, data, tmp_path, kind):
    """Each kernel of a training once, with the bytes of the processor, and nothing is found."""
    environment = {**(as_gpu if kind == "gpu" else simulator), "OCLGRIND_INST_COUNTS": "1"}
    reached = set()
    for name, text in TRAININGS.items():
        words = [quern, "train", *shlex.split(text), "--epochs", "1", "--lr", "0.01", "--seed", "1", "-o"]
        own = words if "--shares" not in words else [w for w in words if w not in ("--shares", "1,2")]
        subprocess.run([*own, tmp_path / "cpu", "--devices", "cpu"], check=True, capture_output=True, cwd=data)
        devices = "cpu,opencl:0" if "--shares" in words else "opencl:0"
        # With many units the gradient of a layer is computed in parts, which atomic additions join.
        environment["OCLGRIND_COMPUTE_UNITS"] = "12" if name == "mse" else "1"
        done = clean([*words, tmp_path / "simulated", "--devices", devices, "--device-timeout", "3000"], environment, data)
        assert recipes.sha256(tmp_path / "simulated") == recipes.sha256(tmp_path / "cpu"), name
        reached |= set(re.findall(r"kernel 'qn_(\w+)'", done.stdout + done.stderr))
    assert not kernels_of(kind) - reached


@pytest.mark.parametrize("text", [TRAININGS["f32"], TRAININGS["layers"]])
def test_application(quern, as_gpu, data, tmp_path, text):
    """predict and evaluate, and a validation."""
    words = shlex.split(text)
    model, files = tmp_path / "model", words[:4]
    subprocess.run([quern, "train", *words, "--epochs", "1", "--lr", "0.01", "-o", model, "--devices", "cpu"], check=True,
                   capture_output=True, cwd=data)
    for command in ["predict", model, *files, "--outputs", "-o", "-"], ["evaluate", model, *files, "--json"]:
        want = subprocess.run([quern, *command, "--devices", "cpu"], check=True, capture_output=True, text=True, cwd=data)
        got = clean([quern, *command, "--devices", "opencl:0"], as_gpu, data)
        assert got.stdout == want.stdout


USERS = {"everything": (MANY, "--in x0=x.npy --in x1=x.npy --in f=f.npy --in b=b.npy --in n=n.npy --in m=m.npy --in w=w.npy "
                        "--seed 5 --set half=0.3", "dgics"),
         "bins": (BINS, "--in n=n1.npy --in f=f1.npy", ["wide", "often", "running", "low", "place", "before", "three"]),
         "1d": (heat("x", "wrap", [(-1,), (1,)]), "--in u=f1.npy --in q=f1.npy --iterations 3", "vr"),
         "2d": (heat("y, x", "nearest", [(-1, 1), (1, 0)]), "--in u=f.npy --in q=f.npy --iterations 2", "vr"),
         "whole": (SMALL.replace("500", "5"), "--in w=f1.npy --shape 300", "o")}


@pytest.mark.parametrize("name", USERS)
def test_kernels_of_users(quern, simulator, tmp_path, name):
    numpy = pytest.importorskip("numpy")
    draw = numpy.random.default_rng(5)
    for array, made in {"x": draw.standard_normal((7, 9)) * 1e3, "w": draw.standard_normal((5, 7)),
                        "f": draw.standard_normal((7, 9)).astype("f4"), "b": draw.integers(-128, 127, (7, 9), "i1"),
                        "n": draw.integers(-99, 99, (7, 9), "i4"), "m": draw.integers(1, 99, (7, 9), "u2"),
                        "n1": draw.integers(-99, 99, 300, "i4"), "f1": draw.standard_normal(300).astype("f4")}.items():
        numpy.save(tmp_path / f"{array}.npy", made)
    text, words, outputs = USERS[name]
    (tmp_path / "k.c").write_text(text)
    run = [quern, "run", "--kernel", "k.c", *words.split(), *(w for o in outputs for w in ("--out", f"{o}=o-{o}.npy")), "--json",
           "--devices"]
    told = []
    for how in "cpu", "opencl:0":
        done = clean([*run, how, "--device-timeout", "3000"], os.environ if how == "cpu" else simulator, tmp_path)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        told.append((rows[0]["results"], [(tmp_path / f"o-{o}.npy").read_bytes() for o in outputs]))
    assert told[0] == told[1]


@pytest.mark.parametrize("words", [["--histograms", "--correlation"], ["--by-class"]])
def test_statistics(quern, simulator, data, words):
    """Columns, their bins, and pairs; and by class."""
    words = [quern, "data", "stats", "wide.csv", "--label", "kind", *words, "--json", "--no-cache", "--devices"]
    want = subprocess.run([*words, "cpu"], cwd=data, check=True, capture_output=True, text=True).stdout
    assert clean([*words, "opencl:0"], simulator, data).stdout == want
