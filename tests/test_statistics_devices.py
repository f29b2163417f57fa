"""Statistics by OpenCL (PoCL) and CUDA (emulated): the bytes of the processor."""

import os
import subprocess

import pytest

import launch
import python_package
import test_kernels_cuda
from test_kernel_devices import device, only, opencl_without  # noqa: F401
from test_statistics import columns

np = pytest.importorskip("numpy")

ROWS = 2**14 + 300  # two parts, the second one short
TABLES = {"wide": ["--unlabelled"], "hard": ["--unlabelled"], "full": ["--unlabelled"], "bytes": ["--unlabelled"],
          "labelled": ["--label", "y"], "classes": ["--label", "y", "--by-class"]}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Missing values and wide ranges; neither; bytes; real labels and categories; classes of several parts."""
    path = tmp_path_factory.mktemp("tables")
    draw = np.random.default_rng(4)
    full = draw.standard_normal((ROWS, 19)).astype("float32")
    full[:, 3] *= np.float32(1e-42)
    np.save(path / "hard.npy", columns(3, ROWS))
    np.save(path / "full.npy", full)
    np.save(path / "wide.npy", draw.standard_normal((ROWS, 100)).astype("float32"))
    np.save(path / "bytes.npy", draw.integers(0, 256, (ROWS, 33), "uint8"))
    (path / "labelled.csv").write_text("x,y,kind\n" + "".join(
        f"{x:.3g},{y:.3g},{'ab'[i % 2]}\n" for i, (x, y) in enumerate(draw.standard_normal((300, 2)))))
    (path / "classes.csv").write_text("x,z,kind,y\n" + "".join(
        f"{x:.3g},{'' if i % 7 == 0 else format(z, '.3g')},{'abc'[i % 3]},{'v' if i < 1200 else 'uw'[i % 2]}\n"
        for i, (x, z) in enumerate(draw.standard_normal((2500, 2)))))
    return path


@pytest.fixture
def stats(quern, tables):
    """stats(table, devices, word, ..., status=0, told="", env=...): what the command prints. `told` is in a note."""
    def call(table, devices, *words, status=0, told="", env=None):
        file = next(tables.glob(f"{table}.*"))
        done = subprocess.run([quern, "data", "stats", file, *TABLES[table], "--json", "--devices", devices,
                               *map(str, words)], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **(env or {})})
        assert done.returncode == status, (done.stdout, done.stderr)
        assert told in done.stderr
        return done.stdout if status == 0 else done.stderr
    return call


def test_same_bytes(stats, device):
    name, env = device
    for table, which in (("hard", name), ("bytes", name), ("labelled", name), ("full", f"cpu:1,{name}")):
        assert stats(table, which, "--correlation", env=env) == stats(table, "cpu", "--correlation"), table


def test_columns_alone(stats, device):
    """Without pairs; by class; and a device that does not exist."""
    name, env = device
    for table, which in (("hard", name), ("bytes", f"cpu:1,{name}"), ("classes", name), ("labelled", "auto")):
        words = ["--histograms", "--quantiles", "0,0.37,1"]
        assert stats(table, which, *words, env=env) == stats(table, "cpu", *words), table
    for words in ([], ["--correlation"]):
        assert "there is no device" in stats("hard", name[:-1] + "97", *words, status=1, env=env)


def test_a_device_fails(stats, device, quern):
    """In the middle, for lack of memory, and with wrong sums."""
    name, env = device
    want = stats("full", "cpu", "--correlation")
    words = ["--correlation"]
    wrong = {"columns": "the sums of a column wrongly", "pairs": "the sums of a covariance wrongly"}
    if name.startswith("opencl"):
        for what, says in wrong.items():
            fake = {**env, **opencl_without(quern, f"{what}=0")}
            assert says in stats("full", name, *words, status=1, env=fake)
        return
    told = "worker cuda:0 failed"
    for plan in ("launch=2", "launch=4", "hang=2,late=1"):  # among the columns, the pairs, the columns
        fake = {**env, "QN_FAKE_CUDA": f"memory=64,{plan}"}
        assert stats("wide", "cpu:1,cuda:0", *words, "--device-timeout", 0.3, told=told,
                     env=fake) == stats("wide", "cpu", *words)
    fake["QN_FAKE_CUDA"] = "memory=64,launch=2"
    message = stats("full", "cuda:0", *words, status=1, env=fake)
    assert "no worker is left" in message and "other devices in --devices" in message
    fake["QN_FAKE_CUDA"] = "memory=1"
    message = stats("full", "cpu:1,cuda:0", *words, status=1, env=fake)
    assert "the device allows" in message and "a table that fits in its memory" in message
    assert stats("full", "cpu:1,cuda", *words, told="cuda:0 is not used: ", env=fake) == want
    for launch, says in zip((2, 4), wrong.values()):
        fake["QN_FAKE_CUDA"] = f"memory=64,wrong={launch}"
        assert says in stats("full", name, *words, status=1, env=fake)


def test_ranks(quern, tables, stats, device):
    """Two processes, one with a GPU alone and one with none."""
    name, env = device
    want = stats("hard", "cpu", "--correlation")
    words = ["data", "stats", next(tables.glob("hard.*")), "--unlabelled", "--correlation", "--json"]
    with launch.Run(quern, "meet", 2, words, each={0: ["--devices", name], 1: ["--devices", "cpu:1"]},
                    environment=env) as run:
        assert run.wait() == [0, 0]
        assert run.text() == want


PYTHON = """
import sys
import numpy as np
import quern
table = np.load(sys.argv[1])[:400]
data = next(quern.Data(table, np.arange(len(table)) * 0.1, task="regression").folds(3))[0]
got, want = (data.describe((), correlation=True, devices=d) for d in (sys.argv[2], None))
for key in ("mean", "covariance", "correlation"):
    assert got[key].tobytes() == want[key].tobytes(), key
"""
MODELS = """
import sys
import numpy as np
import quern
x, y = np.random.default_rng(1).standard_normal((300, 5)), np.arange(300.0)
assert (quern.Ridge(devices=sys.argv[1]).fit(x, y).coef_ == quern.Ridge().fit(x, y).coef_).all()
for kind in (quern.Ridge, quern.Lasso, quern.PCA):
    try:
        kind(devices="no:0").fit(x, y)
        raise AssertionError("a device that is not there was taken")
    except quern.UsageError as error:
        assert "no" in str(error)
"""


def test_python(tables, device):
    """A part of a table with real labels."""
    name, env = device
    python_package.python(PYTHON, tables / "hard.npy", name, env=env)


def test_models(device):
    name, env = device
    only(device, "cuda")
    python_package.python(MODELS, name, env=env)


def test_real_compiler(stats, device):
    """The kernel for floats, as the emulated NVRTC kept it, compiles with NVIDIA's compiler."""
    only(device, "cuda")
    library = test_kernels_cuda.nvrtc_path()
    stats("full", device[0], "--correlation", env=device[1])
    given = test_kernels_cuda.options() + ["--gpu-architecture=compute_75"]
    for file in sorted(os.listdir(device[1]["QUERN_CACHE"])):
        raw = open(os.path.join(device[1]["QUERN_CACHE"], file), "rb").read()
        if not file.endswith(".device") or b"qn_significand" not in raw:
            continue
        source = raw[raw.index(b"\nproducts 0\n") + 12:raw.rindex(b"}\n") + 2]
        ptx = test_kernels_cuda.kept("ptx", lambda: test_kernels_cuda.compile_text(source, given), source, given,
                                     library, os.stat(library).st_mtime_ns)
        assert "qn_user_items" in test_kernels_cuda.kernels_in(ptx)
        return
    raise AssertionError("no kernel was kept")
