"""A processor, an emulator or a C library that computes wrongly is found when the program starts to
compute, by name, and nothing is written."""

import os
import subprocess

import pytest

import builds
import recipes

# Right nearly always: the product is rounded before the sum, as an emulator once did.
WRONG = """
float fmaf(float a, float b, float c) {
    volatile float product = a * b;
    return product + c;
}
"""


@pytest.fixture(scope="module")
def preload(quern, tmp_path_factory):
    """The environment of a program whose fmaf is wrong."""
    builds.require("gcc", "nm")
    if " fmaf" not in subprocess.run(["nm", "-D", quern], capture_output=True, text=True).stdout:
        pytest.skip("fmaf is an instruction on this processor and cannot be replaced")
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "wrong.c").write_text(WRONG)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", folder / "wrong.so", folder / "wrong.c"],
                   check=True)
    return os.environ | {"LD_PRELOAD": str(folder / "wrong.so")}


@pytest.mark.parametrize("isa", ["scalar", "auto"])
def test_wrong_fma(quern, preload, tmp_path, isa):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("0,1,2\n1,2,1\n")
    done = subprocess.run([quern, "train", "--data", data, "--isa", isa, "--epochs", "1", "-o", model],
                          env=preload, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and not model.exists()
    assert "computes fmaf(a, b, c) wrongly" in done.stderr, done.stderr
    assert "is right" in done.stderr and "another machine" in done.stderr


def test_wrong_fma_without_a_file(quern, preload, tmp_path):
    done = subprocess.run([quern, "train", "--epochs", "1", "-o", tmp_path / "model"],
                          env=preload, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "computes fmaf(a, b, c) wrongly" in done.stderr, done.stderr


# What a library does that was linked for speed, to the whole process, when it is loaded.
FLUSHING = """
__attribute__((constructor)) static void flush(void) {
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
}
"""


def test_a_library_that_flushes_subnormal_numbers(quern, tmp_path):
    """Loaded with the program, it changes no model."""
    builds.require("gcc")
    if os.uname().machine != "x86_64":
        pytest.skip("the library is written for x86-64")
    (tmp_path / "flush.c").write_text(FLUSHING)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", tmp_path / "flush.so",
                    tmp_path / "flush.c"], check=True)
    files = recipes.make_data([quern], tmp_path)
    preload = ["env", f"LD_PRELOAD={tmp_path}/flush.so", quern]
    for name in ["tiny-standard", "tiny-adam", "hard-options"]:
        assert recipes.train(preload, name, files, tmp_path / "model") == recipes.table()[name]
