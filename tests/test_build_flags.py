"""CMake refuses what would change results: fast arithmetic, whichever way it comes in, and compilers
that contract or reorder. Each case only configures; the flags themselves are put together here so
that tests/test_house.py does not find them in the tree."""

import os
import shutil
import subprocess

import pytest

import builds

FAST = "-f" "fast-math"
SUBNORMAL = "subnormal numbers become zero"


def configure(folder, *arguments, **variables):
    """Configure Quern there; (status, one line of all that was said)."""
    builds.require("cmake", "ninja")
    environment = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "LDFLAGS")}
    done = subprocess.run(
        ["cmake", "-S", builds.ROOT, "-B", folder, "-G", "Ninja", "-DBUILD_TESTING=OFF",
         "-DQUERN_EXAMPLES=OFF", *arguments],
        env=environment | variables, capture_output=True, text=True, timeout=300)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def refused(folder, reason, *arguments, **variables):
    status, said = configure(folder, *arguments, **variables)
    assert status != 0 and reason in said, said[-3000:]
    return said


@pytest.mark.parametrize("reason, arguments", [
    pytest.param(SUBNORMAL, ["-DCMAKE_BUILD_TYPE=Quick", "-DCMAKE_C_FLAGS_QUICK=-O" "fast"],
                 id="own-build-type"),
    pytest.param(SUBNORMAL, ["-DCMAKE_C_FLAGS=" + FAST], id="compiler-flags"),
    pytest.param(SUBNORMAL, ["-DCMAKE_EXE_LINKER_FLAGS=" + FAST], id="linker-flags"),
    pytest.param(SUBNORMAL, ["-DCMAKE_SHARED_LINKER_FLAGS=" + FAST], id="shared-linker-flags"),
    pytest.param("constants of type double are held as float",
                 ["-DCMAKE_C_FLAGS=-fsingle-precision" "-constant"], id="float-constants"),
    pytest.param("sums are reordered",
                 ["-DCMAKE_C_FLAGS=-fassociative" "-math -fno-signed-zeros -fno-trapping-math"],
                 id="reordered"),
    pytest.param("divisions become multiplications",
                 ["-DCMAKE_C_FLAGS=-freciprocal" "-math"], id="reciprocal"),
    pytest.param("signs of zeros", ["-DCMAKE_C_FLAGS=-fno-signed-zeros"], id="zeros"),
    pytest.param("NaN and infinities are not kept", ["-DCMAKE_C_FLAGS=-ffinite" "-math-only"],
                 id="finite"),
])
def test_flags_refused(tmp_path, reason, arguments):
    builds.require("gcc")
    said = refused(tmp_path, reason, "-DCMAKE_C_COMPILER=gcc", *arguments)
    assert arguments[-1].split("=", 1)[1] in said and "Take out the flags" in said


@pytest.mark.parametrize("variables", [{"CC": "gcc " + FAST}, {"CC": "gcc", "LDFLAGS": FAST},
                                       {"CC": "gcc", "CFLAGS": FAST}],
                         ids=["compiler", "linker", "flags"])
def test_environment_refused(tmp_path, variables):
    builds.require("gcc")
    refused(tmp_path, SUBNORMAL, **variables)


def test_model_of_clang_refused(tmp_path):
    builds.require("clang")
    refused(tmp_path, "sums are reordered", "-DCMAKE_C_COMPILER=clang",
            "-DCMAKE_C_FLAGS=-ffp-model=" "fast")


def test_wide_unit_overruled(tmp_path):
    """The x87 unit computes in another precision, so the flags that follow ask for SSE."""
    builds.require("gcc")
    if os.uname().machine != "x86_64":
        pytest.skip("only x86 has the x87 unit")
    status, said = configure(tmp_path, "-DCMAKE_C_COMPILER=gcc", "-DCMAKE_C_FLAGS=-mfpmath=387")
    assert status == 0, said[-3000:]
    flags = [line for line in (tmp_path / "build.ninja").read_text().splitlines()
             if "mfpmath=387" in line and "ffp-contract" in line]
    assert flags and all(f.rindex("mfpmath=sse") > f.rindex("mfpmath=387") for f in flags)


def test_flags_behind_those_of_the_build_refused(tmp_path):
    """A compiler that adds flags by itself cannot be overruled, but it can be looked at."""
    builds.require("gcc")
    with open("/proc/cpuinfo") as about:
        if " fma " not in about.read():
            pytest.skip("this processor cannot contract: it has no fma")
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@" -ffp-contract=' 'fast\n')
    compiler.chmod(0o755)
    refused(tmp_path / "build", "contracted to one operation", f"-DCMAKE_C_COMPILER={compiler}")


def test_launcher_that_adds_flags_refused(tmp_path):
    builds.require("gcc")
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\nexec "$@" -fassociative' '-math -fno-signed-zeros '
                        '-fno-trapping-math\n')
    launcher.chmod(0o755)
    refused(tmp_path / "build", "sums are reordered", "-DCMAKE_C_COMPILER=gcc",
            f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}")


@pytest.mark.parametrize("reason, flags", [
    ("the sign of zero", "-fassociative" "-math -fno-signed-zeros -fno-trapping-math"),
    ("nan", "-ffinite" "-math-only"),
    ("double constants", "-fsingle-precision" "-constant"), (None, "")],
    ids=["reordered", "finite", "float-constants", "good"])
def test_without_an_emulator(tmp_path, reason, flags):
    """A program for another processor is looked at where it cannot be run."""
    builds.require("aarch64-linux-gnu-gcc")
    toolchain = tmp_path / "toolchain.cmake"
    toolchain.write_text("set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
                         "set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)\n"
                         "set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)\n"
                         "set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)\n")
    status, said = configure(tmp_path / "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
                             f"-DCMAKE_C_FLAGS={flags}", "-DQUERN_ZLIB=OFF")
    assert (status != 0) == (reason is not None), said[-3000:]
    if reason:
        assert f"the compiler does not keep {reason}" in said


def test_a_flag_that_comes_later(tmp_path):
    """What was configured once is looked at again when flags change, and harmless flags pass."""
    builds.require("gcc")
    harmless = ["-DCMAKE_C_COMPILER=gcc", "-DCMAKE_C_FLAGS=-O2 -fno-plt",
                "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,defs"]
    status, said = configure(tmp_path, *harmless)
    assert status == 0, said[-3000:]
    refused(tmp_path, SUBNORMAL, "-DCMAKE_EXE_LINKER_FLAGS=" + FAST)
