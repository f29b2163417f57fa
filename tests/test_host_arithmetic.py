"""A processor, an emulator or a C library that computes wrongly is found when the program starts to
compute, by name, and nothing is written."""

import os
import subprocess

import pytest

import builds

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
