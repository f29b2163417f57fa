"""Every C test program (src/**/*_test.c, tests/*_test.c), in three builds.

The release build shows that the code is right; the sanitizer builds, that it does not touch
memory that is not its own, overflow, or race.
"""

import os
import re
import subprocess
import warnings

import pytest

import builds
import machine
import processor

SOURCES = sorted(builds.ROOT.glob("src/**/*_test.c")) + sorted(builds.ROOT.glob("tests/*_test.c"))


def name_of(source):
    """src/base/error_test.c -> base.error, tests/foo_test.c -> tests.foo, as CMake names them."""
    path = str(source.relative_to(builds.ROOT))
    return re.sub(r"^src/|_test\.c$", "", path).replace("/", ".")


# Programs with random cases are given fewer in the release build; all of them with
# QUERN_LONG_TESTS=yes.
# OpenCL has its turn in test_opencl.py: what takes long is to compile its kernels.
FEWER = {"device.conformance": {"QN_TEST_CASES": "7", "OCL_ICD_VENDORS": "/nonexistent"},
         "device.cpu.float.map": {"QN_TEST_STRIDE": "16381"},
         "cluster.reduction.reduction": {"QN_TEST_CASES": "40"},
         "predict.generate.generator": {"OCL_ICD_VENDORS": "/nonexistent"},
         "cluster.membership.view": {"QN_TEST_CASES": "20"},
         "tests.ranks_deaths": {"QN_TEST_CASES": "10"},
         "tests.gpu_kernels": {"QN_TEST_SEED": "2", "QN_TEST_CASES": "1"},
         "tests.gpu_worker": {"QN_TEST_CASES": "10", "QN_TEST_STRIDE": "3"}}

# Programs that a sanitizer would keep at work for minutes are given fewer cases there. They run in
# full in the release build, the conformance of devices with QUERN_LONG_TESTS=yes.
# What takes long there is to compile OpenCL's kernels, which test_opencl.py and test_matrix.py reach.
SANITIZED = {"device.conformance": {"QN_TEST_CASES": "1", "OCL_ICD_VENDORS": "/nonexistent"},
             "device.cpu.float.outer": {"QN_TEST_STRIDE": "4"},
             "device.cpu.float.map": {"QN_TEST_STRIDE": "16381"},
             "cluster.reduction.reduction": {"QN_TEST_CASES": "10"},
             "predict.generate.generator": {"OCL_ICD_VENDORS": "/nonexistent"},
             "cluster.death": {"QN_TEST_CASES": "8"},
             "cluster.membership.view": {"QN_TEST_CASES": "1"},
             "tests.ranks_deaths": {"QN_TEST_CASES": "10"},
             "tests.gpu_kernels": {"QN_TEST_SEED": "2", "QN_TEST_CASES": "1"},
             "tests.gpu_worker": {"QN_TEST_CASES": "4", "QN_TEST_STRIDE": "7"},
             "tests.team": {"QN_TEST_CASES": "60"}}

# Those among them that have one thread and so nothing for the thread sanitizer. In the release build
# a function in the place of pthread_create sees to it that this is so.
ONE_THREAD = ["base.text.json", "base.text.text", "cluster.reduction.reduction", "cluster.reduction.shares", "cluster.membership.view",
              "data.bytes.gzip", "device.cpu.integer.intgemm", "device.cpu.float.kernels", "device.cpu.float.outer",
              "device.cpu.float.map", "device.gpu.gpu_selftest", "kernels.runtime.elementary_functions", "model.formats.model",
              "model.recipe.recipe", "model.formats.safetensors", "num.elementary", "plan.plan", "team.chooser",
              "base.digest.siphash", "team.virtual_ranks",
              "tests.gpu_intgemm", "tests.gpu_worker"]
NO_THREADS = r"""
#include <unistd.h>
int pthread_create(void) {
    static const char text[] = "a program of ONE_THREAD started a second one\n";
    (void)!write(2, text, sizeof text - 1);
    _exit(99);
}
"""

# Where the processor has no AVX-512 its kernels are run through plain C; tests/avx512_emulated.
EMULATED = [f"avx512_emulated.device.{name}"
            for name in ("cpu.float.map", "cpu.float.kernels", "cpu.float.outer", "cpu.integer.intgemm",
                         "conformance")
            if dict(processor.instruction_sets()).get("avx512")]

# Plain C takes ten times as long as the instructions. OpenCL does not depend on these.
FEWER_EMULATED = {"avx512_emulated.device.conformance": {"QN_TEST_CASES": "15", "OCL_ICD_VENDORS": "/nonexistent"},
                  "avx512_emulated.device.cpu.float.outer": {"QN_TEST_STRIDE": "4"},
                  "avx512_emulated.device.cpu.float.map": {"QN_TEST_STRIDE": "16381"}}
if "QUERN_LONG_TESTS" in os.environ:
    FEWER_EMULATED = {"avx512_emulated.device.conformance": {"QN_TEST_CASES": "60"}}


@pytest.fixture(scope="session")
def no_threads(tmp_path_factory):
    """A library for LD_PRELOAD, with which no program gets a second thread."""
    builds.require("cc")
    library = tmp_path_factory.mktemp("threads") / "none.so"
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], check=True,
                   input=NO_THREADS, text=True)
    return str(library)


# These take long under the address sanitizer; others reach the same code.
LONG_SANITIZED = ["device.conformance", "plan.plan", "tests.cuda_fake", "tests.gpu_kernels",
                  "tests.gpu_intgemm", "tests.gpu_worker", "device.cpu.integer.intgemm",
                  "device.cpu.integer.intgemm_raw", "device.cpu.float.kernels", "device.cpu.float.map",
                  "device.cpu.float.outer", "device.cpu.float.slide", "kernels.runtime.elementary_functions",
                  "device.cpu.worker.cpu_measure", "device.gpu.gpu_selftest",
                  "layer.window", "num.elementary", "team.virtual_ranks"]


# What the optimiser may change: numbers and kernels. The default run has the other programs in the
# sanitizer build alone.
OPTIMISED = re.compile(r"(device|kernels|layer|num|tests)\.|plan\.plan$")


def is_long(preset, name):
    return preset == "asan" and name in LONG_SANITIZED or preset == "release" and not OPTIMISED.match(name)


def cases():
    for preset in ("release", "asan", "tsan"):
        for name in map(name_of, SOURCES):
            if preset != "tsan" or name not in ONE_THREAD:
                yield pytest.param(preset, name, marks=[machine.LONG] if is_long(preset, name) else [])
    for name in EMULATED:
        yield pytest.param("release", name)


def targets(preset):
    """All programs in one go; without QUERN_LONG_TESTS=yes those that the default run has."""
    if preset == "tsan" or "QUERN_LONG_TESTS" in os.environ:
        return "tests"
    some = [name for name in map(name_of, SOURCES) if not is_long(preset, name)]
    return " ".join(["fakes", *(f"test.{name}" for name in some + EMULATED * (preset == "release"))])


@pytest.mark.parametrize("preset, name", list(cases()))
def test_program(preset, name, no_threads, tmp_path):
    folder = builds.ready(preset, targets(preset))
    program = folder / "tests" / name
    if not program.exists():
        pytest.skip("no cmocka (or SIMDe) here; scripts/setup.sh says how to get it")
    environment = builds.environment(preset)
    if name in EMULATED:
        environment |= FEWER_EMULATED.get(name, {})
    if preset == "release" and name in ONE_THREAD:
        environment |= {"LD_PRELOAD": no_threads}
    if preset != "release":
        environment |= SANITIZED.get(name, {})
    elif "QUERN_LONG_TESTS" not in os.environ:
        environment |= FEWER.get(name, {})
    done = subprocess.run(builds.command(preset, program), cwd=tmp_path, timeout=600,
                          capture_output=True, env=environment)
    output = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode == 77:
        pytest.skip(output.strip().splitlines()[-1] if output.strip() else "not on this machine")
    assert done.returncode == 0, output[-8000:]
    # cmocka's exit code does not count what fails between the tests.
    assert "GROUP SETUP" not in output and "GROUP TEARDOWN" not in output, output[-2000:]

    ran = re.search(r"\[==========\] .*?(\d+) test\(s\) run", output)
    assert ran and int(ran[1]) > 0, f"no cmocka test ran:\n{output[-2000:]}"
    skipped = re.findall(r"^\[  SKIPPED \] ([A-Za-z_]\w*)", output, re.MULTILINE)
    if len(set(skipped)) >= int(ran[1]):
        pytest.skip(f"every test of {name} was skipped on this machine")
    for test in sorted(set(skipped)):
        warnings.warn(f"{preset} {name}: {test} was skipped on this machine")
