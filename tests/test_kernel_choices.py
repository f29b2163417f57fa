"""A choice that the kernels' text does not know does not compile: neither in the host's C, which lists
the choices, nor in any language of the text.

Each test adds a row to a list of a copy of the sources, as somebody would who begins with a new
activation, and looks for the compiler's complaint about what is missing.
"""

import ctypes
import re
import shutil
import subprocess

import pytest

import builds
import test_kernels_cuda

SOURCES = builds.ROOT / "src"

# (file, a row, the new row, a function that the text then lacks), by choice.
ROWS = {
    "activation": ("kernels/step.h", "KIND(GELU_TANH, gelu_tanh)", "KIND(NEW, new)", "activate_new"),
    "optimiser": ("kernels/step.h", "KIND(NESTEROV, nesterov, 1u)", "KIND(NEW, new, 1u)", "update_new"),
    "scaling": ("kernels/step.h", "KIND(FRACTION, fraction)", "KIND(NEW, new)", "scale_new"),
    "loss": ("kernels/training/losses.inc", "SUM(HUBER, huber)", "SUM(NEW, new)", "loss_chain_new"),
    "own loss": ("kernels/training/losses.inc", "OWN(BINARY, binary)", "OWN(NEW, new)", "loss_own_new"),
}

# The last value of each enum of num/program.h that has a list or, for arithmetics, a switch.
VALUES = {"activation": "QN__ACT_HARDSIGMOID", "optimiser": "QN__OPT_NESTEROV",
          "scaling": "QN__SCALE_ROBUST", "loss": "QN__LOSS_BINARY", "arithmetic": "QN__ARITH_I21"}


def copied(folder, file=None, old="", new=""):
    """A copy of the sources with one text replaced."""
    shutil.copytree(SOURCES, folder / "src", ignore=shutil.ignore_patterns("cpu", "cluster", "data"))
    if file:
        path = folder / "src" / file
        text = path.read_text()
        assert text.count(old) == 1, (file, old)
        path.write_text(text.replace(old, new))
    return folder / "src"


def text_of(root, *files):
    """The files as cmake/QuernKernels.cmake puts them together."""
    named = re.compile(r'^#include "(.+)"$', re.M)
    return "".join(named.sub(lambda m: text_of(root, m[1]), (root / file).read_text())
                   for file in files)


def said_by(*words, given=""):
    done = subprocess.run([str(w) for w in words], input=given, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr


def host(root):
    """What the C compiler says of the host's lists."""
    return said_by("cc", "-std=c17", "-Wall", "-Werror", "-fsyntax-only", "-I", root,
                   "-I", builds.ROOT / "include", "-I", builds.ready("release") / "generated",
                   root / "kernels" / "kernels.c")


def as_c(root, products=159):
    return said_by("cc", "-std=c17", "-Wall", "-Werror", "-fsyntax-only", "-I", root,
                   f"-DQN_PRODUCTS={products}", "-x", "c", "-",
                   given='#include "kernels/runtime/prelude_c.h"\n#include "kernels/training/program.cl"\n')


def as_opencl(root, products=159):
    builds.require("clang")
    text = text_of(root, "kernels/runtime/prelude_opencl.cl", "kernels/training/program.cl",
                   "kernels/training/program_opencl.cl")
    return said_by("clang", "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header",
                   "-fsyntax-only", "-DQN_ATOMICS64=1", f"-DQN_PRODUCTS={products}", "-DQN_VECTORS=1", "-",
                   given=text)


def as_cuda(root, products=1):
    library, program, size = test_kernels_cuda.nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    text = re.sub("#include.*", "", text_of(root, "kernels/runtime/prelude_cuda.cl", "kernels/training/program.cl"))
    words = [f"-DQN_PRODUCTS={products}", "--gpu-architecture=compute_80", "--std=c++17"]
    given = (ctypes.c_char_p * len(words))(*(w.encode() for w in words))
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"q.cu", 0, None,
                                      None) == 0
    result = library.nvrtcCompileProgram(program, len(words), given)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if result else ""


LANGUAGES = {"c": as_c, "opencl": as_opencl, "cuda": as_cuda}


def test_the_text_as_it_is(tmp_path):
    root = copied(tmp_path)
    assert host(root) == ""
    assert as_c(root) == ""
    if shutil.which("clang"):
        assert as_opencl(root) == ""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("choice", ROWS)
def test_a_row_without_its_functions(choice, language, tmp_path):
    file, row, new, lacks = ROWS[choice]
    said = LANGUAGES[language](copied(tmp_path, file, row, f"{row} {new}"))
    assert re.search(rf"\bqn_{lacks}\b", said), said
    if language == "opencl":  # the vectors' text has functions of its own
        assert re.search(rf"\bqn_{lacks}_lanes\b", said), said


@pytest.mark.parametrize("choice", ROWS)
def test_a_row_without_a_value(choice, tmp_path):
    file, row, new, _ = ROWS[choice]
    assert "_NEW" in host(copied(tmp_path, file, row, f"{row} {new}"))


@pytest.mark.parametrize("choice", VALUES)
def test_a_value_without_a_row(choice, tmp_path):
    last = VALUES[choice]
    text = (SOURCES / "num" / "program.h").read_text()
    old = re.search(rf"\b{last}\b[^}}]*}}", text)[0]
    new = old.replace(last, f"{last}, QN__NEW_VALUE")
    said = host(copied(tmp_path, "num/program.h", old, new))
    assert "QN__NEW_VALUE" in said and "not handled in switch" in said, said


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("products", [16, 256 + 1])
def test_products_that_the_text_does_not_know(products, language, tmp_path):
    assert "QN_PRODUCTS names no arithmetic" in LANGUAGES[language](copied(tmp_path), products)
