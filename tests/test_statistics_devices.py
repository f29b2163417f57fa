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
        f"{x:.3g},{'' if i % 7 == 0 else format(z, '.3g')},{'abc'[i % 3]},{'v' if i < 4100 else 'uw'[i % 2]}\n"
        for i, (x, z) in enumerate(draw.standard_normal((12500, 2)))))
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
    many = ["--bins", 2000]  # more than a device counts
    for table, which, more in (("hard", name, []), ("bytes", f"cpu:1,{name}", []), ("bytes", name, ["--bins", 9]),
                               ("classes", name, []), ("classes", name, many), ("labelled", "auto", [])):
        words = ["--histograms", "--quantiles", "0,0.37,1", *more]
        assert stats(table, which, *words, env=env) == stats(table, "cpu", *words), table
    for words in ([], ["--correlation"]):
        assert "there is no device" in stats("hard", name[:-1] + "97", *words, status=1, env=env)


COLUMN = "the sums or counts of a column wrongly"
WRONG = {"columns": COLUMN, "counts": COLUMN, "pairs": "the sums of a covariance wrongly"}
MANY = ["--histograms", "--bins", 2000]  # more than a device counts, so the pairs follow the sums


@pytest.mark.parametrize("what", WRONG)
def test_wrong_numbers(stats, device, quern, what):
    name, env = device
    launch = {"columns": 2, "counts": 3, "pairs": 5}[what]
    fake = ({**env, "QN_FAKE_CUDA": f"memory=64,wrong={launch}"} if name == "cuda:0"
            else {**env, **opencl_without(quern, f"{what}=0")})
    words = ["--correlation", *MANY] if what == "pairs" else []
    assert WRONG[what] in stats("full", name, *words, status=1, env=fake)


@pytest.mark.parametrize("plan", ["launch=2", "launch=3", "hang=2,late=1", "launch=8"])
def test_a_device_is_lost(stats, device, plan):
    """Among the sums, in a pass, and later, as in the pairs."""
    only(device, "cuda")
    fake = {**device[1], "QN_FAKE_CUDA": f"memory=64,{plan}"}
    told = "" if plan == "launch=8" else "worker cuda:0 failed"
    more = ["--correlation", *MANY] if plan == "launch=8" else []
    assert stats("wide", "cpu:1,cuda:0", *more, "--device-timeout", 0.3, told=told,
                 env=fake) == stats("wide", "cpu", *more)


def test_a_device_is_no_help(stats, device):
    """It is lost and was the only one, or is too small."""
    only(device, "cuda")
    fake = {**device[1], "QN_FAKE_CUDA": "memory=64,launch=2"}
    message = stats("full", "cuda:0", status=1, env=fake)
    assert "no worker is left" in message and "other devices in --devices" in message
    fake["QN_FAKE_CUDA"] = "memory=1"
    message = stats("full", "cpu:1,cuda:0", status=1, env=fake)
    assert "the device allows" in message and "a table that fits in its memory" in message
    assert stats("full", "cpu:1,cuda", told="cuda:0 is not used: ", env=fake) == stats("full", "cpu")


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
