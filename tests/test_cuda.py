"""The CUDA backend over a GPU that is not there.

tests/emulated_gpu makes a libcuda.so.1, a libnvrtc.so.13 and a libnvidia-ml.so.1 that compute with
the kernel text compiled as C. Found first, they are what `quern` runs on here: for real, late as a
device is, and with everything going wrong that QN_FAKE_CUDA names (tests/emulated_gpu/fake_cuda.h).
"""

import itertools
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import builds
import machine
import recipes
import test_kernels_cuda

NVRTC = "libnvrtc.so.13"


@pytest.fixture(scope="session")
def fakes(quern):
    return builds.beside(quern, "fakes", "fake_gpu")


@pytest.fixture(scope="session")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


@pytest.fixture
def gpu(fakes, tmp_path, monkeypatch):
    """gpu("devices=2", driver=folder, nvrtc=...) puts the fakes before every real library. OpenCL has
    no device here: its kernels would be compiled anew, and other tests run them."""
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "cache"))
    for variable in ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"):
        monkeypatch.setenv(variable, "/nowhere")

    def put(plan="", driver=None, nvrtc=None):
        folders = [driver or fakes, fakes]
        monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(str(f) for f in folders))
        monkeypatch.setenv("QN_FAKE_CUDA", plan)
        if nvrtc is None:
            monkeypatch.delenv("QN_FAKE_NVRTC", raising=False)
        else:
            monkeypatch.setenv("QN_FAKE_NVRTC", nvrtc)

    put()
    return put


def listed(run_quern, *options):
    lines = run_quern("devices", "--json", "--measure", "none", *options).stdout.splitlines()
    return [e for e in map(json.loads, lines) if e.get("kind") == "cuda"]


def absence(run_quern):
    found = listed(run_quern)
    assert [e["event"] for e in found] == ["absence"], found
    return found[0]["reason"]


# ---------------------------------------------------------------- the same bytes

@pytest.mark.parametrize("plan, cases", [pytest.param("late=1,devices=2", 5, marks=machine.LONG),
                                         ("capability=75", 2), ("matrix=1", 2)])
def test_conformance(conformance, gpu, plan, cases):
    gpu(plan)
    run_conformance(conformance, "release", cases)


@pytest.fixture(scope="session")
def conformance(quern):
    return builds.beside(quern, "test.device.conformance", "tests/device.conformance")


def run_conformance(program, preset, cases, status=0):
    env = {**builds.environment(preset), "QN_TEST_CASES": str(cases)}
    done = subprocess.run(builds.command(preset, program), env=env, capture_output=True, text=True,
                          timeout=600)
    output = done.stdout + done.stderr
    assert (done.returncode == 0) == (status == 0), output[-6000:]
    return output


def test_generation(quern, gpu):
    """25.70: sequences in random pieces, on a GPU and on the processor together with it."""
    gpu("devices=1")
    program = builds.beside(quern, "test.predict.generate.generator", "tests/predict.generate.generator")
    done = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "SKIPPED" not in done.stdout, (done.stdout + done.stderr)[-4000:]


@machine.LONG
def test_conformance_finds_a_wrong_bit(conformance, gpu):
    """The suite does run on the fake: one bit that one kernel gets wrong makes it fail. Which kernel
    is launched as the 800th depends on the processor's instruction sets, and some of them write
    where nothing is read any more, so a few are tried."""
    for launch in (800, 500, 1000):
        gpu(f"wrong={launch}")
        try:
            found = run_conformance(conformance, "release", 15, status=1)
        except AssertionError:
            continue  # this bit did no harm
        assert "cuda:0" in found
        return
    pytest.fail("none of the wrong bits was found")


@machine.LONG
def test_conformance_sanitized(gpu, monkeypatch):
    """The kernels themselves under the sanitizers: no element outside of its array, no arithmetic
    that the languages leave open."""
    folder = builds.ready("asan", "fakes", "test.device.conformance")
    gpu("late=1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder / "fake_gpu"))
    run_conformance(folder / "tests" / "device.conformance", "asan", 1)


# Up to its failure such a run is like any other. test_matrix.py has a shorter one.
@machine.LONG
@pytest.mark.parametrize("preset, plan", [("asan", "devices=2,on=1,launch=70"),
                                          ("tsan", "devices=2,on=1,hang=70")])
def test_together_sanitized(preset, plan, gpu, files, tmp_path, monkeypatch):
    folder = builds.ready(preset, "fakes")
    gpu(plan)
    for variable, value in builds.environment(preset).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder / "fake_gpu"))
    digest = recipes.train(builds.command(preset, folder / "quern"), "dropout", files,
                           tmp_path / "model", "--devices", "cpu,cuda", "--shares", "1,1,2",
                           "--device-timeout", "2")
    assert digest == recipes.table()["dropout"]


# test_matrix.py has all recipes on one emulated device.
@pytest.mark.parametrize("name", ["relu", "dropout", "adamw", "i14-unit-0"])
def test_training_where_there_are_two(quern, gpu, files, tmp_path, name):
    gpu("devices=2")
    digest = recipes.train([quern], name, files, tmp_path / "model", "--devices", "cuda:0")
    assert digest == recipes.table()[name]


def in_pairs(*lists):
    """All combinations of values of three lists. By default those run that have each pair of values at
    least once."""
    return [pytest.param(a, b, c, marks=[machine.LONG] * ((i + k) % len(lists[2]) != m))
            for (i, a), (k, b), (m, c) in itertools.product(*map(enumerate, lists))]


@pytest.mark.parametrize("name, among, plan", in_pairs(
    ["dropout", "adamw", "batch-50-grain-7"],
    [("cpu,cuda:all", None), ("cuda", None), ("cpu,cuda:0,cuda:1", "1,5,2"), ("auto", None)],
    ["devices=2", "devices=2,late=1", "devices=3,memory=24"]))
def test_together(quern, gpu, files, tmp_path, name, among, plan):
    gpu(plan)
    devices, shares = among
    options = ["--devices", devices] + (["--shares", shares] if shares else [])
    digest = recipes.train([quern], name, files, tmp_path / "model", *options)
    assert digest == recipes.table()[name]


def test_a_wrong_bit_changes_the_model(quern, gpu, files, tmp_path):
    """A bit in one of some kernels one after the other: what not all of them pass on, some do."""
    found = set()
    for at in range(54, 60):
        gpu(f"wrong={at}")
        found.add(recipes.train([quern], "sigmoid", files, tmp_path / "model", "--devices",
                                "cuda:0"))
    assert len(found - {recipes.table()["sigmoid"]}) >= 2


@pytest.mark.parametrize("driver, nvrtc", [("old", None), (None, "old"), ("old", "old")])
def test_older_libraries(quern, fakes, gpu, files, tmp_path, driver, nvrtc):
    """A driver without today's way to make graphs ready; an NVRTC that writes PTX alone."""
    gpu("driver=11000", driver=driver and fakes / driver, nvrtc=nvrtc)
    digest = recipes.train([quern], "adam", files, tmp_path / "model", "--devices", "cuda:0")
    assert digest == recipes.table()["adam"]


@pytest.mark.parametrize("capability, name", [pytest.param(90, "adam", marks=machine.LONG), (129, "adam"),
                                              (90, "i14-unit-0")])
def test_the_real_compiler(quern, gpu, files, tmp_path, monkeypatch, capability, name):
    """NVRTC itself, where it is on the machine: machine code for an architecture that it knows, PTX
    of its newest one for a GPU of tomorrow. The fake driver looks for the kernels in them."""
    monkeypatch.setenv("QUERN_NVRTC", test_kernels_cuda.nvrtc_path())
    gpu(f"capability={capability}")
    digest = recipes.train([quern], name, files, tmp_path / "model", "--devices", "cuda:0")
    assert digest == recipes.table()[name]
    cached = [f.read_bytes() for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert (b"qn_intgemm_errors_i14_matrix_large" in cached[0]) == (name == "i14-unit-0")
    assert (b"qn_errors_large" in cached[0]) == (name == "adam")
    assert len(cached) == 1 and (b"\x7fELF" if capability == 90 else b".target sm_") in cached[0]


# ---------------------------------------------------------------- what it says of itself

def test_described(run_quern, gpu):
    gpu("devices=2,memory=512")
    first, second = listed(run_quern)
    assert (first["id"], second["id"]) == ("cuda:0", "cuda:1")
    assert first["type"] == "GPU" and first["name"] == "Emulated GPU 0"
    assert first["platform"] == "compute capability 9.0"
    assert first["driver"] == "580.00.01, CUDA 13.0"
    assert first["memory"] == 512 << 20 and first["cores"] == 4
    assert first["automatic"] is True and first["refused"] is False


@pytest.mark.parametrize("plan, most, by", [("", "auto", "mma.sync"),
                                            pytest.param("matrix=1", "auto", "dp4a", marks=machine.LONG),
                                            pytest.param("", "plain", "plain", marks=machine.LONG)])
def test_measured(run_quern, gpu, plan, most, by):
    gpu(plan)
    lines = run_quern("devices", "--json", "--devices", "cuda:0", "--gpu-isa",
                      most).stdout.splitlines()
    told = {e["id"]: e for e in map(json.loads, lines) if e["event"] == "device"}
    assert told["cpu"]["tanh_per_s"] is None  # nobody asked for it
    found = told["cuda:0"]
    for key in "matmul_flop_per_s matmul_i7_op_per_s matmul_i21_op_per_s tanh_per_s copy_bytes_per_s".split():
        assert found[key] and found[key] > 1e3, found
    assert found["integers_by"] == by


@pytest.mark.parametrize("plan, ariths, tiles", [
    ("", "f32,i7,i14,i21", ["small", "matrix_large", "matrix_small"]),
    ("matrix=1", "i14", ["small", "large"])])
def test_products_are_measured(fakes, gpu, plan, ariths, tiles):
    """bench/gpu_matmul: each variant that training has is verified and timed, one for each arithmetic
    and product is training's own, and cuBLAS is asked for what it is there to show."""
    gpu(plan)
    done = subprocess.run([builds.bench("gpu_matmul"), "cuda:0", "70", "--arith", ariths,
                           "--products", "forward,errors,gradient", "--seconds", "0"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^ +(qn_\S+|cuBLAS \S+)( \*)? +[\d.]+ [kMG]op/s .*  (bits verified|near)\b",
                       done.stdout, re.MULTILINE)
    integers = [a for a in ariths.split(",") if a != "f32"]
    products = ["forward", "errors", "gradient"]
    kernels = [f"qn_intgemm_{p}_{a}_{t}" for a in integers for p in products for t in tiles
               if (p, t) != ("gradient", "matrix_large")]
    if "f32" in ariths:
        kernels += [f"qn_{p}_{t}" for p in products for t in ("large", "medium", "small")
                    if (p, t) != ("gradient", "medium")]
    blas = ["cuBLAS float32", "cuBLAS TF32", "cuBLAS bytes"]
    assert sorted(name for name, _, _ in found) == sorted([*kernels, *blas]), done.stdout
    assert {name for name, _, proof in found if proof == "near"} == set(blas[:2]), done.stdout
    assert sum(bool(star) for _, star, _ in found) == 3 * len(ariths.split(",")), done.stdout
    packing = re.findall(r"^ +(i\d+) packs the (\w+) +[\d.]+ us", done.stdout, re.MULTILINE)
    assert packing == [(a, what) for a in integers
                       for what in ("items", "errors", "grains", "weights")], done.stdout


def test_energy_and_traffic(run_quern, gpu, files, tmp_path):
    """NVML's counter (100 W here) and the bytes that crossed the bus are in the report."""
    text = run_quern("train", *words("sigmoid", files), "--devices", "cuda:0", "--verbose", "-o",
                     tmp_path / "model").stdout
    assert re.search(r"[\d.]+ J, [\d.]+ mJ an item", text), text
    sent = re.search(r"sent ([\d.]+) (KiB|MiB) in", text)
    assert sent and float(sent[1]) * {"KiB": 1, "MiB": 1024}[sent[2]] > 300 * 784 / 1024, text


# ---------------------------------------------------------------- what is absent

def test_no_library(run_quern, gpu, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH")
    found = listed(run_quern)
    if [e["event"] for e in found] != ["absence"]:
        pytest.skip("this machine has a CUDA driver of its own")
    assert "libcuda.so.1" in found[0]["reason"] and "driver" in found[0]["reason"]


@pytest.mark.parametrize("plan, says", [
    ("devices=0", "sees no NVIDIA GPU; nvidia-smi lists"),
    ("driver=10020", "too old: it knows CUDA 10.2, and Quern needs 11.0; install driver 450"),
    ("init=803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH .*start the machine again"),
    ("init=999", "does not start: error 999"),
])
def test_no_device(run_quern, gpu, plan, says):
    gpu(plan)
    assert re.search(says, absence(run_quern))


def test_a_library_that_lacks_functions(run_quern, fakes, gpu):
    gpu(driver=fakes / "bare")
    reason = absence(run_quern)
    assert "libcuda.so.1 has no function cuDriverGetVersion" in reason and "install" in reason


def test_a_list_that_names_what_is_not_there(run_quern, gpu, files, tmp_path):
    gpu("devices=2")
    done = run_quern("train", *words("sigmoid", files), "--devices", "cuda:2", "-o",
                     tmp_path / "model", status=None)
    assert done.returncode != 0 and "cuda:1" in done.stderr, done.stderr
    gpu("devices=0")
    done = run_quern("train", *words("sigmoid", files), "--devices", "cuda:0", "-o",
                     tmp_path / "model", status=None)
    assert done.returncode != 0 and "NVIDIA GPU" in done.stderr, done.stderr


@pytest.mark.parametrize("library, says", [("nowhere/libnvrtc.so", "cannot be opened"),
                                           ("bare", "has no function nvrtcGetErrorString")])
def test_no_compiler(quern, run_quern, fakes, gpu, files, tmp_path, monkeypatch, library, says):
    path = fakes / "bare" / NVRTC if library == "bare" else tmp_path / library
    monkeypatch.setenv("QUERN_NVRTC", str(path))
    found = listed(run_quern)
    assert found[0]["refused"] is True and found[0]["automatic"] is False
    assert says in found[0]["reason"] and "QUERN_NVRTC" in found[0]["reason"]
    # auto goes on without it; asked for by name, it is refused with the same words.
    digest = recipes.train([quern], "relu", files, tmp_path / "model")
    assert digest == recipes.table()["relu"]
    done = run_quern("train", *words("relu", files), "--devices", "cuda:0", "-o",
                     tmp_path / "other", status=None)
    assert done.returncode != 0 and says in done.stderr, done.stderr


# ---------------------------------------------------------------- what cannot be opened

def words(name, files):
    return [w.format(**files) for w in shlex.split(recipes.RECIPES[name])]


@pytest.mark.parametrize("plan, nvrtc, says", [
    ("retain=2", None, "CUDA_ERROR_OUT_OF_MEMORY.*\n.*nvidia-smi"),
    ("retain=46", None, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    ("memory=1", None, "out of memory: .* MiB were asked for, .* of its 1 MiB are unused"),
    ("prohibited=1", None, "compute mode"),
    ("image=222", None, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION.*\n.*update NVIDIA's driver"),
    ("capability=50", None, r"knows no device as old as .*5\.0.*\n.*QUERN_NVRTC"),
    ("", "fail", r'quern\.cu\(12\): error: identifier "grain" is undefined'),
    ("flush=1", None, "flushes subnormal numbers to zero"),
    ("launch=2", None, "CUDA_ERROR_ILLEGAL_ADDRESS"),
])
def test_refused(quern, run_quern, gpu, files, tmp_path, plan, nvrtc, says):
    """By name: a sentence and a remedy. With auto: the job goes on with what is left."""
    gpu(plan, nvrtc=nvrtc)
    done = run_quern("train", *words("relu", files), "--devices", "cuda:0", "-o",
                     tmp_path / "model", status=None)
    assert done.returncode not in (0, 2) and done.returncode > 0, done.stderr
    assert re.search(says, done.stderr), done.stderr
    assert "\n  " in done.stderr, "no remedy: " + done.stderr
    assert not (tmp_path / "model").exists()
    digest = recipes.train([quern], "relu", files, tmp_path / "model",
                           "--devices", "auto")
    assert digest == recipes.table()["relu"]


@pytest.mark.parametrize("plan", ["", "capability=75", "matrix=1"])
@pytest.mark.parametrize("name", ["i7-adamw", "i14-deep-dropout", "i21-batch-300-grain-1"])
def test_matrix_instructions(run_quern, gpu, files, tmp_path, plan, name):
    """They are used where the self-test finds them right; where it does not, the device goes on
    without, and that is told."""
    gpu(plan)
    done = run_quern("train", *words(name, files), "--devices", "cuda:0", "-o", tmp_path / "model")
    assert recipes.sha256(tmp_path / "model") == recipes.table()[name]
    told = re.search("note: cuda:0 .* goes on without matrix instructions for integers: "
                     ".*multiply integers wrongly", done.stderr)
    assert bool(told) == (plan == "matrix=1"), done.stderr


@pytest.mark.parametrize("plan, nvrtc, says", [
    ("matrix_image=218", None, "CUDA_ERROR_INVALID_PTX|error 218"),
    ("matrix_kernel=500", None, "finding the kernel qn_.*_matrix_"),
    ("", "matrix", "cannot compile the kernels"),
])
def test_a_program_of_matrix_instructions_refused(run_quern, gpu, files, tmp_path, plan, nvrtc,
                                                  says):
    """By the driver or the compiler: the same as where they multiply wrongly."""
    gpu(plan, nvrtc=nvrtc)
    done = run_quern("train", *words("i7-adamw", files), "--devices", "cuda:0", "-o",
                     tmp_path / "model")
    assert recipes.sha256(tmp_path / "model") == recipes.table()["i7-adamw"]
    assert re.search("note: cuda:0 .* goes on without matrix instructions for integers: "
                     f".*({says})", done.stderr), done.stderr


def lacking(text):
    """What the notes say that cuda:0 does without, for integers."""
    return re.findall(r"note: cuda:0 \S+ \S+ \S+ goes on without (.*?) for integers: ", text)


@pytest.mark.parametrize("plan, nvrtc, lacks", [
    ("matrix_fault=700", None, ["matrix instructions"]),
    ("matrix_fault=702,late=1", None, ["matrix instructions"]),
    ("dots_fault=719", None, ["matrix instructions", "dp4a"]),
    ("capability=70,dots_fault=716", "old", ["dp4a"]),
    ("", "dots", ["matrix instructions", "dp4a"]),
])
def test_instructions_that_fail(run_quern, gpu, files, tmp_path, plan, nvrtc, lacks):
    """A kernel that fails in the self-test takes its context with it: the device is opened in
    another one, without the instructions; and so where the compiler does not know them."""
    gpu(plan, nvrtc=nvrtc)
    done = run_quern("train", *words("i7-adamw", files), "--devices", "cuda:0", "-o",
                     tmp_path / "model")
    assert recipes.sha256(tmp_path / "model") == recipes.table()["i7-adamw"]
    assert lacking(done.stderr) == lacks, done.stderr
    if "matrix_fault" in plan:
        assert "(self-test of qn_intgemm_forward_i7_matrix_large)" in done.stderr


@pytest.mark.parametrize("plan, says", [
    ("dots_fault=700,plain_fault=719", "CUDA_ERROR_LAUNCH_FAILED.*\n.*\n.*with faster instructions"),
    ("matrix_fault=700,stuck=1", "CUDA_ERROR_ILLEGAL_ADDRESS.*\n.*\n.*start it again with "
     "--gpu-isa dp4a"),
    ("hang=30", "did not end its work within 0.3 s.*\n.*\n.*--gpu-isa dp4a"),
])
def test_no_instructions_are_left(run_quern, gpu, files, tmp_path, plan, says):
    gpu(plan)
    done = run_quern("train", *words("i7-adamw", files), "--devices", "cuda:0", "--device-timeout",
                     "0.3" if "hang" in plan else "20", "-o", tmp_path / "model", status=None)
    assert done.returncode == 1 and re.search(says, done.stderr), done.stderr
    assert not lacking(done.stderr)


@pytest.mark.parametrize("most, plan", [("dp4a", "matrix_fault=700"), ("plain", "dots_fault=700")])
def test_barred_instructions(run_quern, gpu, files, tmp_path, most, plan):
    """What --gpu-isa bars does not run, not even to be tested, and no byte depends on it."""
    gpu(plan)
    done = run_quern("train", *words("i7-adamw", files), "--devices", "cuda:0", "--gpu-isa", most,
                     "-o", tmp_path / "model")
    assert recipes.sha256(tmp_path / "model") == recipes.table()["i7-adamw"]
    assert not lacking(done.stderr), done.stderr


@pytest.mark.parametrize("at", [1, 12])  # of the general one, of that of the products
def test_a_self_test_that_cannot_be_made(run_quern, gpu, files, tmp_path, at):
    """Without memory for it nothing is known of the matrix instructions."""
    gpu(f"alloc={at}")
    done = run_quern("train", *words("i7-adamw", files), "--devices", "cuda:0", "-o",
                     tmp_path / "model", status=None)
    assert done.returncode == 1 and "out of memory" in done.stderr, done.stderr
    assert "goes on without matrix instructions" not in done.stderr


# ---------------------------------------------------------------- what fails in mid-job

@pytest.mark.parametrize("fault, says, at", [
    pytest.param(fault, says, at, marks=[machine.LONG] * ((i + k) % 2))
    for i, (fault, says) in enumerate([
        ("launch={}", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("launch={},code=46", "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        ("launch={},late=1", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("hang={}", "did not end its work within 1 s"),
        ("hang={},late=1", "did not end its work within 1 s")])
    for k, at in enumerate([45, 52, 61, 83])])
def test_a_device_is_lost(run_quern, gpu, files, tmp_path, fault, says, at):
    gpu("devices=2,on=1," + fault.format(at))
    done = run_quern("train", *words("dropout", files), "--devices", "cpu,cuda:0,cuda:1",
                     "--shares", "1,1,2", "--device-timeout", "1" if "hang" in fault else "20",
                     "-o", tmp_path / "model")
    assert recipes.sha256(tmp_path / "model") == recipes.table()["dropout"]
    assert re.search(rf"cuda:1 failed: .*{says}", done.stderr), done.stderr


SUMS = "{} devices add up their sums themselves"
HOST = "the host adds up the sums of the devices: "


@pytest.mark.parametrize("plan, fault, says", [
    pytest.param("devices=2", "", [SUMS.format(2)], marks=machine.LONG),
    ("devices=3,late=1,order=7", "", [SUMS.format(3)]),
    ("devices=2", "wrong=1", [HOST + r"cuda:1 .* has a wrong sum of known integers"]),
    ("devices=2", "late=4", [SUMS.format(2), HOST + "NCCL 2.30.0 failed at adding up sums: remote process exited"]),
    ("devices=3,on=1,launch=60", "", [SUMS.format(3), "worker cuda:1 failed"]),
    pytest.param("devices=2", "fail=5", [SUMS.format(2), HOST + ".*internal error"], marks=machine.LONG),
    pytest.param("devices=2", "fail=1", [HOST + ".*internal error"], marks=machine.LONG),
    pytest.param("devices=2", "init=2", [HOST + ".*failed at its start: unhandled system"], marks=machine.LONG),
    pytest.param("devices=2", "version=21300", [HOST + "NCCL is older than 2.14"], marks=machine.LONG),
    pytest.param("devices=2", "hang=4", [SUMS.format(2), HOST + "NCCL did not end adding up sums within 0.5 s"],
                 marks=machine.LONG)])
def test_devices_add_up_their_sums(run_quern, fakes, gpu, files, tmp_path, monkeypatch, plan, fault, says):
    """By NCCL, or by the host where it is missing, fails or computes something else: the same bytes."""
    gpu(plan, driver=fakes / "nccl")
    monkeypatch.setenv("QUERN_NCCL", "always")
    monkeypatch.setenv("QN_FAKE_NCCL", fault)
    shares = ",".join("1" * int(plan[8]))
    done = run_quern("train", *words("dropout", files), "--devices", "cuda", "--shares", shares,
                     "--device-timeout", "1" if "hang" in fault else "20", "-o", tmp_path / "model")
    assert recipes.sha256(tmp_path / "model") == recipes.table()["dropout"]
    for text in says:
        assert re.search(text, done.stderr), done.stderr
    assert ("adds up the sums" in done.stderr) == any(HOST in text for text in says), done.stderr
    assert ("add up their" in done.stderr) == any("add up their" in text for text in says), done.stderr


def test_a_lost_device_gives_its_prompts_away(run_quern, gpu, tmp_path):
    """Others read them again, and go on where it was."""
    (tmp_path / "text").write_text("the cat sees the sea. a dog hears the moon.\n" * 9)
    run_quern("train", "--data", tmp_path / "text", "--tokens", "bytes", "--context", 16, "--task", "next", "--model",
              "embedding 256 8; residual { lstm 8 }; conv 24 1x1; attention 2 causal; conv 256 1x1 softmax",
              "--batch", 8, "--epochs", 1, "--devices", "cpu", "-o", tmp_path / "m.st", "--quiet")
    words = ["generate", tmp_path / "m.st", "--tokens", 20, "--batch", 5]
    for prompt in ["the cat", "a", "sea. a dog hears", "moon", "the", "a"]:
        words += ["--prompt", prompt]
    answers = run_quern(*words, "--devices", "cpu").stdout
    for launch in (40, 160):  # while the devices are timed, and later
        gpu(f"devices=2,on=-1,launch={launch}")
        done = run_quern(*words, "--devices", "cuda")
        assert done.stdout == answers and re.search("worker cuda:[01] failed", done.stderr), done.stderr


@pytest.mark.parametrize("fault", ["launch=60", "hang=60"])
def test_the_last_device_is_lost(run_quern, gpu, files, tmp_path, fault):
    gpu(fault)
    done = run_quern("train", *words("adam", files), "--devices", "cuda:0", "--device-timeout",
                     "0.3", "-o", tmp_path / "model", status=None)
    assert done.returncode == 1 and "no worker is left" in done.stderr, done.stderr
    assert not (tmp_path / "model").exists()


# ---------------------------------------------------------------- the cache of programs

def test_the_cache_is_used_and_mended(quern, gpu, files, tmp_path):
    def train():
        return recipes.train([quern], "sigmoid", files, tmp_path / "model", "--devices", "cuda:0")

    wanted = recipes.table()["sigmoid"]
    assert train() == wanted
    cached = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert len(cached) == 1
    whole = cached[0].read_bytes()
    gpu(nvrtc="fail")  # nothing can be compiled, and nothing has to be
    assert train() == wanted
    gpu()
    for broken in (b"", whole[:100], whole[:-1], whole[:-200] + b"x" + whole[-199:]):
        cached[0].write_bytes(broken)
        assert train() == wanted
        assert cached[0].read_bytes() == whole


def test_a_program_for_each_arithmetic(quern, gpu, files, tmp_path):
    """What is cached for one arithmetic is not taken for another, which lacks its kernels."""
    for programs, name in enumerate(("sigmoid", "i7-adamw", "relu", "i14-unit-0")):
        digest = recipes.train([quern], name, files, tmp_path / "model", "--devices", "cuda:0")
        assert digest == recipes.table()[name]
        cached = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
        assert len(cached) == (1, 2, 2, 3)[programs]


def test_no_cache(quern, gpu, files, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUERN_CACHE", str(tmp_path / "file" / "folder"))
    digest = recipes.train([quern], "sigmoid", files, tmp_path / "model", "--devices", "cuda:0")
    assert digest == recipes.table()["sigmoid"]
