"""The kernel text as NVRTC and ptxas take it, on machines without a GPU.

Compiled for several architectures with the options that the backend gives, then looked through:
what is an operation of its own in the text must be one in PTX and in machine code, with its
rounding; nothing is flushed to zero, contracted or done in double precision; no register spills.
Where NVRTC, ptxas or nvdisasm is not on the machine, that part is skipped.
"""

import base64
import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import builds
import machine

ARCHS = [75, *(pytest.param(arch, marks=machine.LONG) for arch in (80, 90, "newest"))]

# The capabilities of which people have GPUs: ptxas allocates registers for each in another way.
SPILLS = [75, *(pytest.param(arch, marks=machine.LONG) for arch in (80, 86, 89, 90, 100, 120, "newest"))]

# At most so many registers a lane: what lets two groups of 256 lanes, of GRADIENT three of 128,
# share a processor, and keeps the kernels that are not products from crowding it. Of the products of
# integers those of one and two digits do so; the large ones of gradients fill a processor alone, and so
# do large ones by matrix instructions.
MOST_REGISTERS = {"matrix_large": 255, "matrix_small": 232, "qn_forward": 128, "qn_errors": 128, "qn_gradient": 168,
                  "qn_intgemm_gradient": 255, "qn_intgemm_forward_i21": 192, "qn_intgemm_errors_i21": 192,
                  "qn_intgemm": 128, "": 64}

# Digits of the integers of each arithmetic: a word of a tile is so many products of bytes, squared.
DIGITS = {"i7": 1, "i14": 2, "i21": 3}

# How many fma the text of a kernel writes, where they can be counted; and whether it converts to 64
# bits, which takes CONVERSION more (kernels/runtime/exact.cl) where the processor's instruction is slow.
WRITTEN_FMA = {"qn_fetch": (0, False), "qn_sums_out": (0, False), "qn_sums_in": (0, False),
               "qn_tally": (0, True), "qn_bias": (0, True), "qn_trial": (1, True)}
CONVERSION = 4


# ---------------------------------------------------------------- tools

def toolkits():
    """Folders that may hold a CUDA toolkit."""
    named = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    if nvcc:
        named.append(Path(nvcc).resolve().parent.parent)
    named += sorted(Path("/usr/local").glob("cuda*"), reverse=True) + ["/opt/cuda", "/usr/lib/cuda"]
    return [Path(p) for p in named if p and Path(p).is_dir()]


def tool(name):
    """The path of a program of the toolkit, or a skip."""
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    places = [p / "bin" / name for p in toolkits()] + sorted(packages.glob(f"*/bin/{name}"))
    found = shutil.which(name) or next((str(p) for p in places if os.access(p, os.X_OK)), None)
    if not found:
        pytest.skip(f"{name} of the CUDA toolkit is not on this machine")
    return found


@functools.cache
def open_nvrtc():
    names = [f"libnvrtc.so.{version}" for version in ("13", "12", "11.2")] + ["libnvrtc.so"]
    folders = ["lib64", "lib", "targets/x86_64-linux/lib"]
    for path in names + [str(p / f / n) for p in toolkits() for f in folders for n in names]:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def nvrtc():
    library = open_nvrtc()
    if not library:
        pytest.skip("NVRTC is not on this machine: install libnvrtc, or set CUDA_HOME")
    return library


def nvrtc_path():
    """Where the library lies that nvrtc() opened."""
    nvrtc()
    maps = Path("/proc/self/maps").read_text()
    return re.search(r"(/\S*/libnvrtc\.so\S*)", maps)[1]


def known():
    """The compute capabilities that NVRTC compiles for."""
    count = ctypes.c_int()
    assert nvrtc().nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
    archs = (ctypes.c_int * count.value)()
    assert nvrtc().nvrtcGetSupportedArchs(archs) == 0
    return list(archs)


def newest():
    return max(known())


def require_arch(arch):
    """A skip where NVRTC or ptxas is too old or too new for it."""
    if arch == "newest":
        return
    if arch not in known():
        pytest.skip(f"this NVRTC does not compile for compute_{arch}: {known()}")
    told = subprocess.run([tool("ptxas"), "--help"], capture_output=True, text=True).stdout
    if not re.search(rf"\bsm_{arch}\b", told):
        pytest.skip(f"this ptxas does not know sm_{arch}")


# ---------------------------------------------------------------- compiling

@functools.cache
def text(name="qn__text_cuda"):
    """A CUDA text that the release build has in it."""
    header = (builds.ready("release") / "generated" / "kernel_text.h").read_text()
    literal = header[header.index(f"{name}[]"):].partition(";\nstatic ")[0]
    lines = "".join(re.findall(r'^"(.*)"', literal, re.M))
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], lines).encode()


def options():
    """The options that the library gives NVRTC."""
    source = (builds.ROOT / "src" / "kernels" / "kernels.c").read_text()
    return re.search(r'QN__CUDA_C\s*\?\s*"([^"]*)"', source)[1].split()


def kept(name, make, *parts):
    """The text make() for these parts, made by one process for all of them, and kept from run to run."""
    key = hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
    path = builds.CACHE / f"cuda-{name}-{key[:32]}"
    with builds.untimed(), builds.alone(path.name):
        if not path.exists():
            path.with_suffix(".part").write_text(make())
            path.with_suffix(".part").rename(path)
    return path.read_text()


@functools.cache
def compiled(arch, changed=(), products=191):
    """PTX of the text; `changed` maps options of the library to others, for tests of the tests."""
    arch = newest() if arch == "newest" else arch
    given = [dict(changed).get(o, o) for o in options()] + [f"-DQN_PRODUCTS={products}",
                                                            f"--gpu-architecture=compute_{arch}"]
    library = Path(nvrtc_path())
    return kept("ptx", lambda: compile_text(text(), given), text(), given, library,
                library.stat().st_mtime_ns)


def compile_text(source, given):
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * len(given))(*(o.encode() for o in given))
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"quern.cu", 0, None, None) == 0
    result = library.nvrtcCompileProgram(program, len(given), words)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert result == 0, log.value.decode(errors="replace")
    assert "warning" not in log.value.decode(errors="replace")
    assert library.nvrtcGetPTXSize(program, ctypes.byref(size)) == 0
    ptx = ctypes.create_string_buffer(size.value)
    assert library.nvrtcGetPTX(program, ptx) == 0
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


@functools.cache
def assembled(arch, folder):
    """(what ptxas says, path of the machine code)."""
    ptxas = tool("ptxas")
    arch = newest() if arch == "newest" else arch
    source, code = Path(folder) / f"{arch}.ptx", Path(folder) / f"{arch}.cubin"
    ptx = compiled(arch)

    def assemble():
        source.write_text(ptx)
        done = subprocess.run([ptxas, "-v", f"-arch=sm_{arch}", source, "-o", code],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr + "\0" + base64.b64encode(code.read_bytes()).decode()

    said, _, machine_code = kept("code", assemble, ptx, ptxas, os.stat(ptxas).st_mtime_ns).partition("\0")
    code.write_bytes(base64.b64decode(machine_code))
    return said, code


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cuda"))


QN_WITH_ALL = 15  # of QN_PRODUCTS: the bits of arithmetics (src/kernels/step.h)


@functools.cache
def kernel_list():
    """(name, lanes, products) of each row of src/kernels/training/kernel_list.h, as the preprocessor has them."""
    done = subprocess.run(["cc", "-E", "-P", "-I", builds.ROOT / "src", "-"], capture_output=True,
                          text=True, check=True,
                          input='#include "kernels/training/kernel_list.h"\nQN__KERNEL_LIST(KERNEL_ROW)\n')
    rows = re.findall(r'KERNEL_ROW\(\w+, (\w+), "\w+", (\d+), \d+, \d+, \d+, ([\du |()]+)\)(?=\s|$)',
                      done.stdout)
    assert len(rows) == done.stdout.count("KERNEL_ROW")
    bits = [sum({int(bit) for bit in re.findall(r"\d+", products)}) for _, _, products in rows]
    return [("qn_" + name, int(lanes), to) for (name, lanes, _), to in zip(rows, bits)]


def kernels_of_the_host(products=191):
    """Names of the kernels that the CUDA backend launches. As qn__kernel_belongs: one arithmetic in
    common, and all kinds of tiles that the kernel has."""
    return [name for name, lanes, to in kernel_list()
            if lanes > 1 and to & QN_WITH_ALL & products and not to & ~QN_WITH_ALL & ~products]


def kernels_in(ptx):
    """name -> the instructions of a kernel, predicates and operands left out."""
    found = {}
    for name, body in re.findall(r"\.entry (\w+)\((.*?)\n\}", ptx, re.DOTALL):
        found[name] = re.findall(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)\s", body, re.MULTILINE)
    return found


# ---------------------------------------------------------------- PTX

def complaints(ptx):
    """What in PTX breaks the contract."""
    wrong = []
    found = kernels_in(ptx)
    for name, instructions in found.items():
        for word in sorted(set(instructions)):
            parts = word.split(".")
            floats = "f32" in parts[1:]
            if "ftz" in parts:
                wrong.append(f"{name}: {word} flushes to zero")
            if "f64" in parts:
                wrong.append(f"{name}: {word} is double precision")
            if "approx" in parts or "full" in parts:
                wrong.append(f"{name}: {word} is not a rounded operation")
            if floats and parts[0] in ("add", "sub", "mul", "fma", "div", "sqrt") and \
                    "rn" not in parts:
                wrong.append(f"{name}: {word} leaves its rounding, or its contraction, open")
            if floats and parts[0] == "mad":
                wrong.append(f"{name}: {word} is contracted")
    for name, (written, converts) in WRITTEN_FMA.items():
        slow = converts and not any(w.startswith("cvt.rni.s64.f32") for w in found[name])
        if found[name].count("fma.rn.f32") != written + CONVERSION * slow:
            wrong.append(f"{name}: more or fewer fma than its text writes")
    return wrong


@pytest.mark.parametrize("arch", ARCHS)
def test_ptx(arch):
    ptx = compiled(arch)
    found = kernels_in(ptx)
    assert sorted(found) == sorted(kernels_of_the_host())
    assert complaints(ptx) == []
    for name in found:  # the rounding of each operation is there to be seen
        if name.startswith(("qn_forward", "qn_errors", "qn_gradient")):
            assert found[name].count("fma.rn.f32") >= 100, name
        if "_matrix_" in name:
            # Each 16 rows by 8 columns of a warp, in quarters where there is nothing larger.
            done = [w for w in found[name] if w.startswith("mma.sync.aligned.m")]
            word = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32" if arch == 75 else \
                "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
            digits = next(d for arith, d in DIGITS.items() if f"_{arith}_" in name)
            tiles = 4 if digits == 3 else 8
            tiles *= 2 if name.endswith("_large") else 1
            assert set(done) == {word}, name
            assert len(done) == digits ** 2 * tiles * (4 if arch == 75 else 1), name
            assert arch == 75 or "cp.async.cg.shared.global" in found[name], name
        elif name.startswith("qn_intgemm"):
            numbers = 16 if name.endswith("_large") else 4
            digits = next(d for arith, d in DIGITS.items() if f"_{arith}_" in name)
            assert found[name].count("dp4a.s32.s32") % (numbers * digits ** 2) == 0, name
            assert found[name].count("dp4a.s32.s32") > 0, name
    assert {"div.rn.f32", "sqrt.rn.f32"} <= set(found["qn_trial"])
    assert {"div.rn.f32", "sqrt.rn.f32"} <= set(found["qn_update"])


# Those that take long here have nothing that the others lack.
@pytest.mark.parametrize("products", [pytest.param(1, marks=machine.LONG), 1 + 128,
                                      pytest.param(4 + 16, marks=machine.LONG), 4 + 32, 4 + 16 + 64])
def test_programs(products):
    """A program has what its arithmetic needs, and no kernel more; no dot products where they are
    barred."""
    ptx = compiled(90, (), products)
    found = kernels_in(ptx)
    assert sorted(found) == sorted(kernels_of_the_host(products))
    assert ("dp4a" in ptx) == (products & 64 == 0)
    assert 10 < len(found) < len(kernels_of_the_host()) * 2 / 3


@pytest.mark.parametrize("option, other, says", [
    ("--fmad=false", "--fmad=" "true", "qn_trial: more or fewer fma"),
    ("--ftz=false", "--ftz=true", "flushes to zero"),
])
@machine.LONG  # test_words_refused shows what the checks find, without a compilation of five seconds
def test_ptx_refused(option, other, says):
    """The checks above find a text compiled otherwise."""
    wrong = complaints(compiled(80, ((option, other),), 1))
    assert any(says in w for w in wrong), wrong


def functions_of_kernels():
    """The text of the functions of user kernels, and a kernel for each function and format."""
    header = (builds.ROOT / "src" / "kernels" / "runtime" / "elementary_functions.h").read_text()
    names = re.findall(r"\bROW\((\w+)\)", header.split("*/", 2)[2].partition("qn__f32_sqrt")[0])
    assert len(names) == 24
    kernels = [f'extern "C" __global__ void {kind}_{name}(const {real} *x, {real} *y) {{\n'
               f"    y[0] = qn_{kind}_{name}(x[0]{', x[1]' * (name in ('pow', 'atan2', 'hypot'))});\n}}\n"
               for kind, real in (("f32", "float"), ("f64", "double")) for name in names]
    return text("qn__text_math_cuda") + "".join(kernels).encode(), names


def test_functions_of_kernels():
    """Each operation of the functions of user kernels is one in PTX; binary32 needs no double."""
    source, names = functions_of_kernels()
    given = options() + ["--gpu-architecture=compute_75"]
    library = Path(nvrtc_path())
    ptx = kept("ptx", lambda: compile_text(source, given), source, given, library,
               library.stat().st_mtime_ns)
    found = kernels_in(ptx)
    assert sorted(found) == sorted(f"{kind}_{name}" for kind in ("f32", "f64") for name in names)
    for name, instructions in found.items():
        for word in set(instructions):
            parts = word.split(".")
            assert not {"ftz", "approx", "full"} & set(parts), (name, word)
            assert not (name.startswith("f32") and "f64" in parts), (name, word)
            if {"f32", "f64"} & set(parts) and parts[0] in ("add", "sub", "mul", "fma", "div", "sqrt"):
                assert "rn" in parts, (name, word)
            assert parts[0] != "mad" or not {"f32", "f64"} & set(parts), (name, word)
    # The text of cbrt: 5 coefficients after the first, two steps.
    for kind, real in (("f32", "f32"), ("f64", "f64")):
        assert found[f"{kind}_cbrt"].count(f"fma.rn.{real}") == 11, kind
        assert f"div.rn.{real}" in found[f"{kind}_atan2"] and f"sqrt.rn.{real}" in found[f"{kind}_sqrt"]


@pytest.mark.parametrize("word, says", [
    ("add.f32", "leaves its rounding"), ("mul.rn.f64", "double precision"),
    ("div.full.f32", "not a rounded operation"), ("sqrt.approx.f32", "not a rounded operation"),
    ("mad.rn.f32", "contracted"), ("fma.rn.ftz.f32", "flushes to zero"),
    ("fma.rn.f32", "qn_fetch: more or fewer fma"), ("mul.rn.f32", "qn_trial: more or fewer fma"),
])
def test_words_refused(word, says):
    body = "".join(f".entry {name}(\n)\n{{\n\t{word} %f1;\n}}\n" for name in WRITTEN_FMA)
    assert any(says in w for w in complaints(body))


# ---------------------------------------------------------------- registers and machine code

def spoken(said):
    """kernel -> (registers, bytes of stack, of spills) from what ptxas says."""
    pattern = (r"Function properties for (\w+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, "
               r"(\d+) bytes spill loads\s+ptxas info\s*: Used (\d+) registers")
    return {m[0]: (int(m[4]), int(m[1]), int(m[2]) + int(m[3]))
            for m in re.findall(pattern, said)}


@pytest.mark.parametrize("arch", SPILLS)
def test_registers(arch, folder):
    require_arch(arch)
    found = spoken(assembled(arch, folder)[0])
    assert sorted(found) == sorted(kernels_of_the_host())
    print(f"sm_{arch}: " + ", ".join(f"{n[3:]} {r}" for n, (r, _, _) in sorted(found.items())))
    for name, (registers, stack, spills) in found.items():
        assert spills == 0 and stack == 0, f"{name}: {stack} bytes of stack, {spills} of spills"
        bound = next(b for part, b in MOST_REGISTERS.items()
                     if name.startswith(part) or name.endswith(part) and part)
        assert registers <= bound, f"{name}: {registers} registers"


def test_spills_are_seen():
    said = ("ptxas info    : Function properties for qn_x\n    8 bytes stack frame, 4 bytes spill "
            "stores, 12 bytes spill loads\nptxas info    : Used 255 registers, used 0 barriers\n")
    assert spoken(said) == {"qn_x": (255, 8, 16)}


@pytest.mark.parametrize("arch", ARCHS)
def test_machine_code(arch, folder):
    """What ptxas makes of it. It divides, takes roots and divides integers by sequences of its own,
    with .FTZ in them where nothing is lost; kernels without these must be free of it."""
    nvdisasm = tool("nvdisasm")
    code = assembled(arch, folder)[1]
    done = subprocess.run([nvdisasm, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this nvdisasm does not know the architecture: {done.stderr.strip()[:80]}")
    ptx = kernels_in(compiled(arch))
    parts = re.split(r"^\.text\.(\w+):$", done.stdout, flags=re.MULTILINE)[1:]
    found = dict(zip(parts[::2], parts[1::2]))
    assert sorted(found) == sorted(kernels_of_the_host())
    for name, body in found.items():
        words = set(re.findall(r"\b(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9]*(?:\.[A-Z0-9_]+)*)\s", body))
        divides = any(w.startswith(("div.", "sqrt.", "rem.")) for w in ptx[name])
        for word in sorted(words):
            assert not re.match(r"D(ADD|MUL|FMA|SETP|MNMX)\b", word) and ".F64" not in word, \
                f"{name}: {word}"
            assert not word.startswith("FFMA.FTZ"), f"{name}: {word}"
            assert divides or ".FTZ" not in word, f"{name}: {word}"
        if name.startswith(("qn_forward", "qn_errors", "qn_gradient")):
            assert "FFMA" in words, name
        if "_matrix_" in name:
            assert any(w.startswith("IMMA.") for w in words), name
        elif name.startswith("qn_intgemm"):
            assert any(w.startswith("IDP.4A.S8.S8") for w in words), name
