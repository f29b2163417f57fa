"""Kernels of users on OpenCL (PoCL) and CUDA (emulated): the bytes and messages of the processor."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import numpy
import pytest

import builds
import devices
import test_kernel
import test_kernels_cuda
from device_kernels import BINS, FAULTS, MANY, SMALL, STREAMED, heat

if not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")):
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The arrays of all kernels."""
    path = tmp_path_factory.mktemp("kernels")
    draw = numpy.random.default_rng(11)
    shape = (37, 53)
    arrays = {"x": draw.standard_normal(shape) * 10.0 ** draw.integers(-3, 12, shape),
              "f": draw.standard_normal(shape).astype("float32"),
              "b": draw.integers(-128, 128, shape).astype("int8"),
              "n": draw.integers(-2**31, 2**31, shape).astype("int32"),
              "m": draw.integers(1, 100, shape).astype("uint16"),
              "w": draw.standard_normal((5, 7))}
    arrays["x"][0, :4] = [numpy.inf, -numpy.inf, 2.0**63, -0.0]
    arrays["n"][0, :3] = -2**31
    arrays["y"] = numpy.arange(5000) + 0.5
    arrays["h"] = arrays["y"].astype("float32")
    for name, array in arrays.items():
        numpy.save(path / f"{name}.npy", array)
    return path


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What is compared here are devices; test_kernel.py optimises for the processor."""
    path = tmp_path_factory.mktemp("cc") / "quick-cc"
    path.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def run(quern, folder, tmp_path_factory, quick, monkeypatch):
    """run(kernel, devices, word, ...) in the folder of the arrays; the rest of a test's environment
    is in run.env."""
    def call(text, devices, *words, status=0, env=None):
        (folder / "k.c").write_text(text)
        done = subprocess.run([quern, "run", "--kernel", "k.c", "--devices", devices, *map(str, words)],
                              cwd=folder, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "CC": quick, **(env or {})})
        assert done.returncode == status, (done.stdout, done.stderr)
        return done
    return call


@pytest.fixture(scope="module", params=["opencl", "cuda"])
def device(request, quern, tmp_path_factory):
    """A device's name, and its environment. New memory of both is full of 0xff."""
    cache = dict.fromkeys(("QUERN_CACHE", "QN_FAKE_KEEP"), str(tmp_path_factory.mktemp("cache")))
    if request.param == "cuda":
        fakes = builds.beside(quern, "fakes", "fake_gpu")
        return "cuda:0", {"LD_LIBRARY_PATH": str(fakes), "QN_FAKE_CUDA": "memory=64", **cache}
    found, absent = devices.listed([quern], dict(os.environ))
    names = [name for name, row in found.items() if row["platform"] == devices.POCL]
    if not names:
        pytest.skip(f"no PoCL here: {absent.get('opencl')}")
    return names[0], {**cache, **opencl_without(quern, "fill=1")}


INPUTS = [w for name, file in {"x0": "x", "x1": "x", "f": "f", "b": "b", "n": "n", "m": "m", "w": "w"}.items()
          for w in ("--in", f"{name}={file}.npy")]
OUTS = [w for name in "dgics" for w in ("--out", f"{name}=o-{name}.npy")]


def written(folder, names):
    return b"".join((folder / f"o-{name}.npy").read_bytes() for name in names)


def test_same_bytes(run, folder, device):
    """One device, it beside the processor with many small pieces, and the recipe that both write."""
    name, env = device
    done = run(MANY, "cpu:1", *INPUTS, *OUTS, "--seed", 5, "--json", "--set", "half=0.3")
    want = json.loads(done.stdout)["results"], written(folder, "dgics")
    recipe = (folder / "o-d.recipe.json").read_bytes()
    for which in (name, f"cpu:2,{name}"):
        done = run(MANY, which, *INPUTS, *OUTS, "--seed", 5, "--json", "--set", "half=0.3", "--grain", 64, env=env)
        got = json.loads(done.stdout)
        assert got["results"] == want[0], which
        assert written(folder, "dgics") == want[1], which
        assert (folder / "o-d.recipe.json").read_bytes() == recipe
        assert name in got["devices"] or which != name
        assert not done.stderr


def test_signs_of_zeros(run, folder, device, tmp_path):
    name, env = device
    test_kernel.zero_inputs(tmp_path)
    words = [w if "=" not in w else w.replace("=", f"={tmp_path}/") for w in test_kernel.ZERO_FILES]
    run(test_kernel.ZEROS, name, *words, env=env)
    test_kernel.zeros_are_right(tmp_path)


@pytest.mark.parametrize("border, taps, shape", [
    ("wrap", [(-1,), (1,)], (1961,)), ("zero", [(0, -1, 1), (1, 0, -1)], (5, 17, 23))])
def test_iterations(run, folder, device, border, taps, shape):
    """Kernels in float alone, in one and three dimensions, whose outputs become inputs. A device alone
    gets them once, and gives them back for a checkpoint only."""
    name, env = device
    indices = ", ".join("zyx"[3 - len(shape):])
    draw = numpy.random.default_rng(4)
    for array in "uq":
        numpy.save(folder / f"{array}.npy", draw.standard_normal(shape).astype("float32"))
    words = ["--in", "u=u.npy", "--in", "q=q.npy", "--out", "v=o-v.npy", "--out", "r=o-r.npy", "--iterations", 5]
    seen, size = set(), 8 * math.prod(shape) / 1024
    for which in ("cpu", name, f"cpu:1,{name}"):
        done = run(heat(indices, border, taps), which, *words, "--verbose", env=env)
        seen.add((written(folder, "vr"), *re.findall(r"^(?:heat|top|warm) .*", done.stdout, re.M)))
        if which == name:
            sent, got = map(float, re.search(r"sent ([\d.]+) KiB .* received ([\d.]+) KiB", done.stdout).groups())
            assert size < sent < 1.2 * size and got < 5 * size, done.stdout
    for state, least, most in (("one 3", 2, 1.2), ("four 1", 5, 1.2), ("one 9 --resume", 1, 1.2)):
        file, every, *resume = state.split()
        words_of_state = ["--checkpoint", file, "--checkpoint-every", every, *resume]
        done = run(heat(indices, border, taps), name, *words, "--verbose", *words_of_state, env=env)
        seen.add((written(folder, "vr"), *re.findall(r"^(?:heat|top|warm) .*", done.stdout, re.M)))
        sent, got = map(float, re.search(r"sent ([\d.]+) KiB .* received ([\d.]+) KiB", done.stdout).groups())
        assert size < sent < most * size and least * size < got < (least + 4) * size, done.stdout
    assert b"\0iteration 3\n" in (folder / "one").read_bytes()
    for file in ("one", "four"):
        (folder / file).unlink()
    assert len(seen) == 1
    done = run(heat(indices, border, taps), name, *words, "--json", "--checkpoint", "four", "--checkpoint-every", 1,
               env=env)
    (folder / "four").unlink()
    assert [worker["items"] for worker in json.loads(done.stdout)["workers"]] == [5 * math.prod(shape)]


def test_stopped(quern, run, folder, device):
    """Ctrl-C, while only the device has the newest arrays."""
    name, env = device
    text = heat("x", "wrap", [(1,), (0,)])  # whose values stay small, however far a fast machine gets
    (folder / "k.c").write_text(text)
    for array in "uq":
        numpy.save(folder / f"{array}.npy", numpy.random.default_rng(4).standard_normal(1961).astype("float32"))
    words = ["--in", "u=u.npy", "--in", "q=q.npy", "--out", "v=o-v.npy", "--out", "r=o-r.npy"]
    job = subprocess.Popen([quern, "run", "--kernel", "k.c", "--devices", name, *words, "--iterations", "10000000",
                            "--checkpoint", "state", "--checkpoint-every", "20"],
                           cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
    while not (folder / "state").exists():
        assert job.poll() is None, job.stderr.read()
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    said = job.communicate()[1]
    assert job.returncode == 130 and "add --resume to continue after iteration" in said
    state = (folder / "state").read_bytes()
    (folder / "state").unlink()
    done = int(state.split(b"\0iteration ")[1].split()[0])
    run(text, "cpu", *words, "--iterations", done)
    made = {numpy.load(folder / f"o-{array}.npy").tobytes() for array in "vr"}
    assert 0 < done and all(array in state for array in made)


def test_faults(run, folder, device):
    """The first item of many that are not possible, and what is wrong with it."""
    name, env = device
    words = ["--in", "x=y.npy", "--in", "h=h.npy", "--in", "w=h.npy", "--out", "o=o-o.npy"]
    (folder / "o-o.npy").unlink(missing_ok=True)
    for mode in range(7):
        want = run(FAULTS, "cpu", *words, "--set", f"mode={mode}", status=1).stderr
        assert "item 700" in want
        for which in (name, f"cpu:1,{name}")[:1 + (mode == 5)]:
            assert run(FAULTS, which, *words, "--set", f"mode={mode}", status=1, env=env).stderr == want
    assert not (folder / "o-o.npy").exists()
    run(FAULTS, name, *words, "--set", "mode=9", "--quiet", env={**env, "CC": "no-such-cc"})


def test_no_compiler(run, folder, device):
    """A device needs no C compiler; a processor that is named does."""
    name, env = device
    env = {**env, "CC": "no-such-cc"}
    words = ["--in", "x=y.npy", "--in", "h=h.npy", "--in", "w=h.npy", "--out", "o=o-o.npy", "--set", "mode=9"]
    run(FAULTS, name, *words, env=env)
    assert "CC names" in run(FAULTS, f"cpu,{name}", *words, status=1, env=env).stderr


def test_bins_and_scans(run, folder, device):
    name, env = device
    outputs = ("wide", "often", "running", "low", "place", "before", "three")
    for array in ("n", "f"):
        numpy.save(folder / f"{array}1.npy", numpy.load(folder / f"{array}.npy").ravel())
    seen = set()
    for which in ("cpu", name, f"cpu:1,{name}"):
        run(BINS, which, "--in", "n=n1.npy", "--in", "f=f1.npy", "--quiet", "--grain", 64, env=env,
            *[w for o in outputs for w in ("--out", f"{o}=o-{o}.npy")])
        seen.add(written(folder, outputs))
    assert len(seen) == 1


@pytest.fixture
def small(run, folder):
    """small(devices, device, plan, word, ...): a kernel on the emulated CUDA device of such a plan."""
    numpy.save(folder / "s.npy", numpy.arange(300_000, dtype="float32"))

    def call(devices, device, plan, *words, status=0):
        done = run(SMALL, devices, "--in", "w=s.npy", "--out", "o=o-o.npy", "--shape", 300_000, "--grain", 64, *words,
                   status=status, env={**device[1], "QN_FAKE_CUDA": plan})
        total = re.findall(r"^all .*", done.stdout, re.M)
        return done, (total, (folder / "o-o.npy").read_bytes()) if status == 0 else None
    return call


def only(device, name):
    if not device[0].startswith(name):
        pytest.skip(f"of {name} alone")


def test_a_device_fails(small, device):
    """In the middle, at its self-test, and for lack of memory."""
    only(device, "cuda")
    want = small("cpu", device, "memory=64")[1]
    done, got = small("cpu:1,cuda:0", device, "memory=64,launch=3")
    assert got == want and "worker cuda:0 failed" in done.stderr
    done, got = small("cpu:1,cuda:0", device, "memory=64,hang=3,late=1", "--device-timeout", 0.3)
    assert got == want and "did not end its work within 0.3 s" in done.stderr
    done, _ = small("cuda:0", device, "memory=64,launch=3", status=1)
    assert re.search(r"no worker is left\n.*other devices in --devices", done.stderr)
    for plan, says in (("memory=64,wrong=1", "self-test"), ("memory=1", "the device allows")):
        done, _ = small("cpu:1,cuda:0", device, plan, status=1)
        assert says in done.stderr
        done, got = small("cpu:1,cuda", device, plan)
        assert got == want and "cuda:0 is not used" in done.stderr


@pytest.fixture(scope="module")
def streamed(folder):
    """The arrays of STREAMED, and its words."""
    draw = numpy.random.default_rng(3)
    for name, array in {"x": draw.standard_normal(150_000), "f": draw.random(150_000, "float32"), "w": draw.random(7, "float32"),
                        "b": draw.integers(-128, 128, 150_000, "int8")}.items():
        numpy.save(folder / f"s{name}.npy", array)
    outputs = ("o", "p", "running")
    return outputs, [*(w for name in "xfbw" for w in ("--in", f"{name}=s{name}.npy")),
                     *(w for name in outputs for w in ("--out", f"{name}=o-{name}.npy")), "--json"]


def test_parts_under_way(run, folder, device, streamed):
    """Parts are sent, computed and fetched at the same time, in every order that the device may choose."""
    name, env = device
    outputs, words = streamed
    seen = set()
    for which, plan in (("cpu", ""), (name, "late=1"), *((name, f"late=1,order={seed}") for seed in (1, 2)),
                        (f"cpu:1,{name}", "late=1,order=4"))[:5 if name == "cuda:0" else 2]:
        done = run(STREAMED, which, *words, env={**env, "QN_FAKE_CUDA": f"memory=64,{plan}".rstrip(",")})
        seen.add((written(folder, outputs), json.dumps(json.loads(done.stdout)["results"])))
    assert len(seen) == 1


def test_a_part_fails(run, folder, device, streamed):
    """The device fails or falls silent while three parts are under way: another one computes them again."""
    only(device, "cuda")
    outputs, words = streamed
    seen = {(run(STREAMED, "cpu", *words).returncode, written(folder, outputs))}
    # With on=-1 the one that comes to so many launches first. Each device takes a grain, of many launches.
    for fault, says in (("on=-1,launch=30", "worker cuda:[01] failed"), ("on=0,hang=12", "did not end its work within 1 s")):
        plan = f"memory=64,devices=2,late=1,order=5,{fault}"
        done = run(STREAMED, "cuda:0,cuda:1", *words, "--grain", 30_000, "--device-timeout", 1,
                   env={**device[1], "QN_FAKE_CUDA": plan})
        seen.add((done.returncode, written(folder, outputs)))
        assert re.search(says, done.stderr), done.stderr
    assert len(seen) == 1


def test_choice(run, folder, device):
    """Who computes the iterations is tried. The device that is chosen fails while it alone has the newest
    arrays: the run goes on from older ones."""
    only(device, "cuda")
    for array in "uq":
        numpy.save(folder / f"{array}.npy", numpy.random.default_rng(4).standard_normal(1961).astype("float32"))
    text, seen = heat("x", "wrap", [(-1,), (1,)]), set()
    words = ["--in", "u=u.npy", "--in", "q=q.npy", "--out", "v=o-v.npy", "--out", "r=o-r.npy", "--iterations", 1500,
             "--series", "heat=heat.npy", "--json"]
    # Sending takes long, so one device alone is faster than both; it is the first one with many launches.
    fails = "memory=64,devices=2,on=-1,launch=1000,send=100"
    for devices, plan in (("cpu", ""), ("cpu:1,cuda:0", "memory=64"), ("cuda:0,cuda:1", fails)):
        done = run(text, devices, *words, env={**device[1], "QN_FAKE_CUDA": plan})
        report = json.loads(done.stdout)
        seen.add((written(folder, "vr"), (folder / "heat.npy").read_bytes(), json.dumps(report["results"])))
        items = sum(worker["items"] for worker in report["workers"])
        assert abs(items - 1500 * 1961) < 2 or "failed" in done.stderr
    assert [worker["bytes_up"] < 2e5 for worker in report["workers"] if worker["lost"]] == [True], report
    assert len(seen) == 1


def test_real_compiler(run, device):
    """The texts above, as the emulated NVRTC kept them, compile with NVIDIA's and round each operation."""
    only(device, "cuda")
    run(MANY, device[0], *INPUTS, *OUTS, env=device[1])
    library = test_kernels_cuda.nvrtc_path()
    given = test_kernels_cuda.options() + ["-DQN_DOUBLE=1", "--gpu-architecture=compute_75"]
    seen = 0
    for file in sorted(os.listdir(device[1]["QUERN_CACHE"])):
        raw = open(os.path.join(device[1]["QUERN_CACHE"], file), "rb").read()
        if not file.endswith(".device") or b"qn_body" not in raw or (b"qn_f64_" in raw) != (seen == 0):
            continue
        source = raw[raw.index(b"\nproducts 0\n") + 12:raw.rindex(b"}\n") + 2]
        ptx = test_kernels_cuda.kept("ptx", lambda: test_kernels_cuda.compile_text(source, given), source, given,
                                     library, os.stat(library).st_mtime_ns)
        words = test_kernels_cuda.kernels_in(ptx)["qn_user_items"]
        for word in map(str.split, (w.replace(".", " ") for w in words)):
            assert not {"ftz", "approx", "full"} & set(word), word
            if {"f32", "f64"} & set(word) and word[0] in ("add", "sub", "mul", "fma", "div", "sqrt"):
                assert "rn" in word, word
        seen += 1
        if seen == 2:
            return
    assert seen > 0


def opencl_without(quern, plan):
    """The environment of the real devices after the fake OpenCL, with a plan of what they lack."""
    path = os.environ["PATH"] + ":/sbin:/usr/sbin"
    real = re.search(r"^\s*libOpenCL\.so\.1 .*=> (\S+)",
                     subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                                    env={**os.environ, "PATH": path}).stdout, re.M)[1]
    return {"QN_REAL_OPENCL": real, "QN_FAKE_OPENCL": plan,
            "LD_LIBRARY_PATH": str(builds.beside(quern, "fakes", "fake_opencl"))}


def test_opencl_refused(run, folder, device, quern):
    """A device without double precision computes kernels in float only; one with a wrong bit none."""
    only(device, "opencl")
    env = {**device[1], **opencl_without(quern, "")}
    text = "INDEX(i);\nOUTPUT(float, o);\nKERNEL { o = i * %s; }\n"
    words = ["--shape", 100, "--out", "o=o-o.npy", "--quiet"]
    for plan, number, says in (("dots=3", "0.5", "no double precision (cl_khr_fp64)"),
                               ("fma=0", "0.5f", "computes qn_fma_f32(fa, fb, fc) wrongly")):
        done = run(text % number, device[0], *words, status=1, env={**env, "QN_FAKE_OPENCL": plan})
        assert says in done.stderr and "--devices" in done.stderr
    run(text % "0.5f", device[0], *words, env={**env, "QN_FAKE_OPENCL": "dots=3"})
