"""The same bytes everywhere: small recipes in every build, instruction set, number of threads, and
on devices beside the processor or in its place.

The models' digests must be those of tests/digests.txt, which were made once; so a compiler, an
optimisation level, a processor or a number of threads that changes a bit is found. The sanitizer
builds train a few of the recipes as well, which shows that whole runs are clean.

By default each recipe is trained by the widest instruction set, and most by one other. Slower ways, which are
the devices and the oracle, take a recipe only where it has a word that no recipe before it has: a kind
of layer, an activation, a loss, an option (`choice`). So whoever adds a recipe names it nowhere here,
but in the list of its kind: one with a new word is trained in all ways. QUERN_LONG_TESTS=yes trains
every recipe in all ways.
"""

import hashlib
import itertools
import json
import os
import re
import shlex
import subprocess
from random import Random

import pytest

import builds
import devices
import machine
import processor
import recipes
from oracle_runs import run_oracle

ALL = recipes.FLOATS
INTEGERS = list(recipes.INTEGERS)
A_FEW = ["tanh-mse-sgd", "dropout", "adamw", "cosine-warmup", "batch-50-grain-7", "from-csv-gz",
         "decimals-standard", "real-huber", "binary"]
# Those whose steps have grains enough for uneven shares: 8 and 300, the others have 2.
MANY_GRAINS = ["batch-50-grain-7", "batch-300-grain-1"]

LONG = "QUERN_LONG_TESTS" in os.environ

# build: (recipes, thread counts). The sanitizers slow a program down by ten, the emulator more.
BUILDS = {
    "release": (ALL, [1, 2, 3, 7, 16]),  # gcc -O3
    "clang": (ALL if LONG else A_FEW, [3]),    # clang -O1, LONG -O3; without zlib
    "debug": (ALL, [3]),                 # gcc -O0
    "clang-debug": (ALL, [3]),           # clang -O0
    "aarch64": (ALL, [3]),               # gcc -O3 for Arm, under qemu-aarch64
    "asan": (A_FEW, [3]),
    "tsan": (A_FEW, [4]),
}
# The sanitizer builds have the library's own assertions too. Other cross builds, one for 64-bit Arm
# among them, are made by -O0 (test_platforms.py).
LONG_BUILDS = ["debug", "clang-debug", "aarch64"]

# The same for integers; threads share the panels of a product, and the grains of a gradient.
FEW_INTEGERS = ["i14-relu-momentum", "i7-adamw", "i21-unit-20", "i14-batch-50-grain-7"]
SOME_INTEGERS = [*FEW_INTEGERS, "i14-real-huber", "i14-deep-dropout", "i21-batch-300-grain-1"]
INTEGER_BUILDS = {
    "release": (INTEGERS, [1, 3]),
    "clang": (FEW_INTEGERS, [2]),
    "debug": (FEW_INTEGERS, [5]),
    "clang-debug": (FEW_INTEGERS[2:], [3]),
    "aarch64": (FEW_INTEGERS, [3]),
    "asan": (FEW_INTEGERS[2:], [3]),
    "tsan": (FEW_INTEGERS[2:], [4]),
}


# Convolutions and pools; threads share rows and panels.
WINDOWS = list(recipes.WINDOWS)
FEW_WINDOWS = ["pixels-panels", "pixels-dropout", "pixels-batch-5"]
WINDOW_BUILDS = {
    "release": (WINDOWS, [1, 3]),
    "clang": (FEW_WINDOWS, [2]),
    "debug": (FEW_WINDOWS, [5]),
    "clang-debug": (FEW_WINDOWS[1:], [3]),
    "aarch64": (FEW_WINDOWS, [3]),
    "asan": (FEW_WINDOWS, [3]),
    "tsan": (FEW_WINDOWS[2:], [4]),
}

# Contract 6.
SIXTH = list(recipes.SIXTH)
# Integers with pixels are long on devices.
SIXTH_DEVICES = [name for name, words in recipes.SIXTH.items()
                 if "conv" not in words or "--arith" not in words]
FEW_SIXTH = ["nesterov", "clip"]
SIXTH_BUILDS = {
    "release": (SIXTH, [1, 3]),
    "clang": (FEW_SIXTH, [2]),
    "debug": (SIXTH, [5]),
    "clang-debug": (FEW_SIXTH, [3]),
    "aarch64": (SIXTH, [3]),
    "asan": (FEW_SIXTH, [3]),
    "tsan": (FEW_SIXTH, [4]),
}

# Normalisation.
NORMS = [name for name in recipes.NORMS if not name.endswith("i14")]
FEW_NORMS = ["batchnorm-weights", "groupnorm-first"]
NORM_BUILDS = {
    "release": (NORMS, [1, 3]),
    "clang": (FEW_NORMS, [2]),
    "debug": (NORMS, [5]),
    "clang-debug": (FEW_NORMS, [3]),
    "aarch64": (NORMS, [3]),
    "asan": (FEW_NORMS, [3]),
    "tsan": (FEW_NORMS[1:], [4]),
}


# Both: few recipes, whose operands every instruction set packs in its own way.
INTEGER_WINDOWS = [*recipes.INTEGER_WINDOWS, *recipes.INTEGER_BLOCKS, "batchnorm-i14", "groupnorm-i14"]
INTEGER_WINDOW_BUILDS = {
    "release": (INTEGER_WINDOWS, [3]),
    "debug": (INTEGER_WINDOWS[1:3], [2]),
    "aarch64": (INTEGER_WINDOWS[:4] + ["residual-i14-dense"], [2]),
    "asan": (INTEGER_WINDOWS[-2:], [3]),
    "tsan": (INTEGER_WINDOWS[-1:], [4]),
}


# Residual blocks, and groups.
BLOCKS = [*recipes.BLOCKS, *recipes.GROUPS]
FEW_BLOCKS = ["residual-dropout", "residual-dense", "groups-first"]
BLOCK_BUILDS = {
    "release": (BLOCKS, [3]),
    "debug": (FEW_BLOCKS, [2]),
    "aarch64": (BLOCKS, [2]),
    "asan": (FEW_BLOCKS, [3]),
    "tsan": (FEW_BLOCKS[:1], [4]),
}

# Contract 8, by arithmetic.
EIGHTH = [name for name, words in recipes.EIGHTH.items() if "--arith i" not in words]
EIGHTH_INTEGERS = [name for name in recipes.EIGHTH if name not in EIGHTH]
EIGHTH_BUILDS = {"release": (EIGHTH, [3]), "debug": (EIGHTH, [2]), "aarch64": (EIGHTH, [2]), "asan": (EIGHTH, [3])}
EIGHTH_INTEGER_BUILDS = {"release": (EIGHTH_INTEGERS, [3]), "aarch64": (EIGHTH_INTEGERS, [2])}

# Contract 9.
NINTH = [name for name, words in recipes.NINTH.items() if "--arith i" not in words]
NINTH_INTEGERS = [name for name in recipes.NINTH if name not in NINTH]
NINTH_BUILDS = {"release": (NINTH, [1, 3]), "debug": (NINTH, [2]), "aarch64": (NINTH, [2]), "asan": (NINTH, [3])}
NINTH_INTEGER_BUILDS = {"release": (NINTH_INTEGERS, [1, 3]), "debug": (NINTH_INTEGERS[:1], [2]),
                        "aarch64": (NINTH_INTEGERS, [2]), "asan": (NINTH_INTEGERS[1:], [3])}

# What the processor alone does, whatever computes: to read, to divide the items, to draw first weights,
# to choose an epoch.
NOT_ON_DEVICES = re.compile(r"--(data|label|valid|seed|epochs|batch|lr|schedule|warmup|stages|init|keep|early|shape"
                            r"|missing|drop|date|task|augment|tolerance|new)")


def words_of(name):
    """The kinds of layers, activations and options of a recipe; an option with its value, when that
    is a word too."""
    words, found = shlex.split(recipes.RECIPES[name]), set()
    for option, value in zip(words, [*words[1:], ""]):
        if option == "--model":
            found |= set(re.findall(r"[a-z]{3,}|\|", value))
        elif option.startswith("--"):
            found.add(f"{option} {value.split()[0]}" if re.match("[a-z]", value) else option)
    return found


def choice(names, first=(), words=words_of):
    """`first`, and of `names` those that have a word which none before them has."""
    chosen, seen = list(first), set().union(*map(words, first))
    for name in names:
        if not words(name) <= seen and name not in chosen:
            chosen.append(name)
            seen |= words(name)
    return chosen


# Begins with networks whose pixels are few: the emulated CUDA devices take seconds for larger ones.
DEVICE_FIRST = [*A_FEW, "pixels-panels", "pixels-dropout", "pixels-maxpool-overlap", "pixels-mse",
                "batchnorm-grain-1", "batchnorm-grain-beyond", "residual-dense", "residual-first", "groups-first",
                "groupnorm-conv", "groups-i14-depthwise", "layers-300"]
ON_DEVICES = WINDOWS + NORMS + BLOCKS + INTEGER_WINDOWS + EIGHTH + EIGHTH_INTEGERS + NINTH + NINTH_INTEGERS + [n for n in SIXTH if n not in SIXTH_DEVICES]
EVERY = ALL + SOME_INTEGERS + SIXTH_DEVICES + ON_DEVICES
BY_DEFAULT = choice(EVERY, DEVICE_FIRST,
                    lambda name: {word for word in words_of(name) if not NOT_ON_DEVICES.match(word)})

# There each recipe is trained by one set of those that this machine has, in turn: which kernels run does
# not matter for the rest of the program, and the conformance suite calls all of them in these builds. The
# scalar kernels, which a sanitizer slows down most, take turns in A_FEW alone.
BY_TURNS = ["asan", "clang"]
# These take long with a sanitizer.
LONG_SANITIZED = ["layers-300", "transposed", "attention-i7-pixels", "attention-integers-i7", "attention-integers-i21",
                  "rotary"]
# In the release build AVX2 takes these: the scalar kernels need a second and more for one.
SLOW_SCALAR = ["attention", "groupnorm-conv", "pixels-avgpool", "rotary", "transposed"]


def turn(i, name, integers):
    """The set of instructions that recipe number i has in a build of BY_TURNS."""
    here = processor.here(integers)
    sets = here if name in A_FEW else here[1:] or here
    return sets[i % len(sets)]


def cases():
    """(build, instruction set, recipe, threads); what is not on this machine is one skipped case."""
    for table, integers in ((BUILDS, False), (WINDOW_BUILDS, False), (INTEGER_BUILDS, True),
                            (SIXTH_BUILDS, False), (NORM_BUILDS, False), (BLOCK_BUILDS, False),
                            (INTEGER_WINDOW_BUILDS, True), (EIGHTH_BUILDS, False), (EIGHTH_INTEGER_BUILDS, True),
                            (NINTH_BUILDS, False), (NINTH_INTEGER_BUILDS, True)):
        for build, (names, threads) in table.items():
            if build in LONG_BUILDS and not LONG:
                kind = "integer" if integers else "float32"
                yield pytest.param(build, None, None, None, marks=machine.LONG,
                                   id=f"{build}-every-{kind}-recipe")
                continue
            for isa, lacking in processor.instruction_sets(build == "aarch64", integers):
                if lacking:
                    reason = f"this machine's processor has no {lacking}"
                    kind = "integer" if integers else "float32"
                    yield pytest.param(build, isa, None, None, marks=pytest.mark.skip(reason=reason),
                                       id=f"{build}-{isa}-every-{kind}-recipe")
                    continue
                for i, name in enumerate(names):
                    # How threads share the work does not depend on the kernels, of which the scalar
                    # ones take three times as long as all others.
                    slow = isa == "scalar" and not LONG
                    counts = [min(threads[-1], 7)] if slow else threads
                    if len(counts) > 2 and not LONG and name not in A_FEW:
                        counts = [counts[0], counts[1 + i // 2 % (len(counts) - 1)]]
                    rare = build in BY_TURNS and not LONG and isa != turn(i, name, integers)
                    rare |= build == "asan" and name in LONG_SANITIZED
                    # The widest set has every recipe. The scalar kernels, which are slow, have those that
                    # the devices have, and AVX2 half of the others. All have a conformance suite of their own.
                    others = "avx2" if name in SLOW_SCALAR or name not in BY_DEFAULT else "scalar"
                    rare |= (build == "release" and not LONG and name not in A_FEW
                             and isa in ("scalar", "avx2") and isa != processor.here()[-1]
                             and (isa != others or name not in BY_DEFAULT and i % 2 == 1))
                    yield pytest.param(build, isa, name, counts, id=f"{build}-{isa}-{name}",
                                       marks=[machine.LONG] * rare)


def has_zlib(build):
    info = builds.directory(build) / "generated" / "build_info.h"
    return re.search(r'QN_BUILD_FEATURES "[^"]*\bzlib\b', info.read_text()) is not None


@pytest.fixture(scope="session")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("build, isa, name, counts", list(cases()))
def test_training(build, isa, name, counts, files, tmp_path, monkeypatch):
    program = builds.ready(build) / "quern"
    if "_gz}" in recipes.RECIPES[name] and not has_zlib(build):
        pytest.skip(f"the build '{build}' found no zlib for its processor")
    for variable, value in builds.environment(build).items():
        monkeypatch.setenv(variable, value)
    expected = recipes.table()[name]
    for threads in counts:
        digest = recipes.train(builds.command(build, program), name, files, tmp_path / "model",
                               "--isa", isa, "--threads", str(threads))
        assert digest == expected, f"{threads} threads gave another model"


# Of what `data stats --json` prints of `numbers`, as a build of before ranks divided it printed it.
STATISTICS = "69d10fb09a6d97dd8073765609620c48e35d2fedd2d8edc08903b1b68c40cbdc"


def numbers(path):
    """A table of columns of several magnitudes, with missing cells and labels."""
    random = Random(3)
    rows = [",".join([*(f"c{k}" for k in range(21)), "kind", "y"])]
    for i in range(700):
        cells = [repr((random.random() - 0.5) * 10.0 ** (k % 7 - 3)) if random.random() > 0.1 * (k % 3 == 1)
                 else "" for k in range(21)]
        rows.append(",".join([*cells, "abc"[i % 3], str(i * 7 % 4)]))
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("build", [pytest.param(build, marks=[machine.LONG] * (build in LONG_BUILDS))
                                   for build in BUILDS])
def test_statistics(build, tmp_path):
    program = builds.ready(build) / "quern"
    table = numbers(tmp_path / "numbers.csv")
    for threads in (1, 3):
        done = subprocess.run(
            [*builds.command(build, program), "data", "stats", table.name, "--label", "y", "--by-class",
             "--correlation", "--histograms", "--json", "--no-cache", "--threads", str(threads)],
            cwd=tmp_path, capture_output=True, env={**os.environ, **builds.environment(build)}, timeout=120)
        assert done.returncode == 0, done.stderr
        assert hashlib.sha256(done.stdout).hexdigest() == STATISTICS, f"{threads} threads"


def train_on(names, name, files, model, environment, *more, build="release"):
    """Train a recipe on these devices; (SHA-256 of the model, grains that each of them took)."""
    program = builds.ready(build) / "quern"
    arguments = [a.format(**files) for a in shlex.split(recipes.RECIPES[name])]
    done = subprocess.run(
        [*builds.command(build, program), "train", *arguments, "--devices", ",".join(names),
         "--threads", "2", "--device-timeout", "600", *more, "--json", "-o", str(model)],
        capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    report = json.loads(done.stdout.splitlines()[-1])
    return recipes.sha256(model), {w["name"]: w["grains"] for w in report["workers"]}


def on_kinds(*lists):
    """Every combination on each kind of device, by name: opencl-adamw, cuda-relu-1,5 and so on."""
    return [pytest.param(*case, id="-".join(case))
            for case in itertools.product(devices.KINDS, *lists)]


# Both kinds run the same text of the kernels, and the conformance suite calls all of them on both. So by
# default a recipe is trained by one kind, in turn.
ON_BOTH = ["tanh-mse-sgd", "dropout", "adamw", "batch-50-grain-7", "pixels-panels", "i14-relu-momentum"]


def has_turn(kind, name):
    kinds = list(devices.KINDS)
    return name in ON_BOTH or name in BY_DEFAULT and kinds[BY_DEFAULT.index(name) % len(kinds)] == kind


@pytest.mark.parametrize("kind, name", [
    pytest.param(kind, name, id=f"{kind}-{name}", marks=[machine.LONG] * (not has_turn(kind, name)))
    for name in EVERY for kind in devices.KINDS])
def test_one_device(kind, name, files, tmp_path):
    """A device alone gives every model: its grains, its sums, its updates."""
    names, environment = devices.KINDS[kind]()
    digest, grains = train_on(names, name, files, tmp_path / "model", environment)
    assert digest == recipes.table()[name]
    assert list(grains) == names and grains[names[0]] > 0


# How devices share a step depends on its grains, not on the recipe.
SHARED = ["tanh-mse-sgd", "dropout", "adamw", "batch-50-grain-7"]


@pytest.mark.parametrize("kind, name", on_kinds([*(A_FEW if LONG else SHARED), "i14-relu-momentum"]))
def test_two_devices(kind, name, files, tmp_path):
    names, environment = devices.KINDS[kind](2)
    digest, grains = train_on(names, name, files, tmp_path / "model", environment,
                              "--shares", "2,3")
    assert digest == recipes.table()[name]
    assert list(grains) == names and min(grains.values()) > 0


@pytest.mark.parametrize("device, name", [
    *(("cpu", name) for name in ["batchnorm-grain-1", "pixels-grain-7", "i14-batch-50-grain-7", "frozen"]),
    *(pytest.param(kind, name, marks=[machine.LONG] * (name != "batch-50-grain-7"))
      for kind in devices.KINDS for name in ["batch-50-grain-7", "i14-batch-50-grain-7", "pixels-grain-7"])])
def test_parts(device, name, files, tmp_path):
    """A device that computes the grains of a step in several parts gives every model."""
    names, environment = devices.KINDS[device]() if device in devices.KINDS else (["cpu"], None)
    digest, _ = train_on(names, name, files, tmp_path / "model", environment, "--parts", "3")
    assert digest == recipes.table()[name]


@pytest.mark.parametrize("device, name, more", [
    *(("cpu", *case) for case in [
        ("pixels-dropout", []), ("batchnorm-silu", []), ("residual-batchnorm", ["--parts", "2"]), ("residual-dropout", []),
        ("frozen", ["--parts", "2"]), ("freeze-single", ["--parts", "2"]), ("i14-deep-dropout", []), ("residual-i14-batchnorm", ["--parts", "2"])]),
    *((kind, "residual-batchnorm", []) for kind in devices.KINDS), ("opencl", "residual-i14-batchnorm", [])])
def test_outputs_computed_again(device, name, more, files, tmp_path):
    names, environment = devices.KINDS[device]() if device in devices.KINDS else (["cpu"], None)
    digest, _ = train_on(names, name, files, tmp_path / "model", environment, "--recompute", *more)
    assert digest == recipes.table()[name]


@pytest.mark.parametrize("kind, name, shares", [
    *on_kinds([*(A_FEW if LONG else SHARED), "i21-unit-20", *FEW_SIXTH], ["3,2"]), *on_kinds(MANY_GRAINS, ["1,5", "7,2"]),
    *on_kinds(["i7-adamw", "i14-batch-50-grain-7"], ["2,5"]),
    *on_kinds(["frozen", "freeze-single", "batchnorm-dense"], ["2,3"]),
    *(pytest.param(*case, "3,2", id="-".join(case), marks=machine.LONG)
      for case in itertools.product(devices.KINDS, ON_DEVICES))])
def test_device_beside_the_processor(kind, name, shares, files, tmp_path):
    """Both in every step, unevenly: what one computes the other goes on from."""
    names, environment = devices.KINDS[kind]()
    digest, grains = train_on(["cpu", *names], name, files, tmp_path / "model", environment,
                              "--shares", shares)
    assert digest == recipes.table()[name]
    assert list(grains) == ["cpu", *names] and min(grains.values()) > 0


# The thread sanitizer is left out of the emulated CUDA devices: each lane of a kernel is a stack of
# its own there, and changing stacks under that sanitizer takes minutes for a few steps.
@pytest.mark.parametrize("build, kind, name", [
    pytest.param(build, kind, name, id=f"{build}-{kind}-{name}")
    for build, kind in (("asan", "opencl"), ("tsan", "opencl"), ("asan", "cuda"))
    for name in ("batch-50-grain-7",)] + [
    pytest.param("asan", "opencl", "i14-batch-50-grain-7", id="asan-opencl-i14-batch-50-grain-7")])
def test_device_in_sanitizer_builds(build, kind, name, files, tmp_path):
    names, environment = devices.KINDS[kind](1, build, builds.environment(build))
    for more in ([], ["--shares", "2,3"]):
        taking = ["cpu", *names] if more else names
        digest, grains = train_on(taking, name, files, tmp_path / "model", environment, *more,
                                  build=build)
        assert digest == recipes.table()[name]
        assert list(grains) == taking and min(grains.values()) > 0


@pytest.mark.parametrize("name", [*A_FEW[:2], "i14-batch-50-grain-7", "frozen"])
def test_all_kinds_at_once(name, files, tmp_path):
    """The processor, two OpenCL devices and two CUDA devices in one job, by measured speed."""
    opencl, environment = devices.pocl(2)
    cuda, environment = devices.emulated_cuda(2, environment=environment)
    digest, grains = train_on(["cpu", *opencl, *cuda], name, files, tmp_path / "model", environment)
    assert digest == recipes.table()[name]
    assert list(grains) == ["cpu", *opencl, *cuda]


# These take long in Python, and others are like them; for pixels, those of test_oracle_pixels.py.
SLOW_IN_PYTHON = ["pixels-gelu", "batch-1", "best", "best-file", "early-stopping", "early-stopping-file",
                  "from-csv", "from-csv-gz", "from-idx-gz", "i14-bytes-none", "unit-30", "relu-last", "sgd-decay",
                  "tanh-last", "scale-none", "step", "augment-conv", "channel-conv", "batchnorm-silu", "residual-gelu",
                  "tanh-cross-entropy-sgd", "momentum", "none", "deep", "channel-dense", "augment-dense", "minmax-i14",
                  "lbfgs-hidden", "augment-cutmix", "mixup", "droppath", "bilinear", "segment", "segment-augment",
                  "attention", "gru", "texts", "texts-steps", "texts-hidden", "texts-chars",
                  *INTEGER_WINDOWS, *BLOCKS,
                  *(name for name in NORMS if name != "groupnorm-layernorm")]


IN_PYTHON = ALL + INTEGERS + INTEGER_WINDOWS + SIXTH + NORMS + BLOCKS + EIGHTH + EIGHTH_INTEGERS + NINTH + NINTH_INTEGERS
# A third of those with new words: all are trained by the program, whose bytes are those of the table too, so
# a night is soon enough to find that the oracle or the table has changed.
PYTHON_BY_DEFAULT = choice([name for name in IN_PYTHON if name not in SLOW_IN_PYTHON], SOME_INTEGERS)[::3]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[machine.LONG] * (name not in PYTHON_BY_DEFAULT))
                                  for name in IN_PYTHON])
def test_oracle(name, files, tmp_path):
    """The second program, written from docs/exactness.md alone, gives the same table."""
    arguments = [a.format(**files) for a in shlex.split(recipes.RECIPES[name])]
    pixels = ("conv " in recipes.RECIPES[name] or name in NORMS) and "embedding" not in recipes.RECIPES[name]
    own = [("--shape", "1x28x28")] if pixels else []
    for option, value in (("--grain", "32"), ("--label", "1"), *own):  # it has no defaults
        if option not in arguments:
            arguments += [option, value]
    model = tmp_path / "model"
    run_oracle(arguments, model)
    assert recipes.sha256(model) == recipes.table()[name]


@pytest.mark.parametrize("build", [build for build in BUILDS if LONG or build not in LONG_BUILDS])
def test_synthetic_data(build, tmp_path):
    program = builds.ready(build) / "quern"
    images, labels = recipes.synth(builds.command(build, program), tmp_path)
    assert recipes.sha256(images) == recipes.table()["data-images"]
    assert recipes.sha256(labels) == recipes.table()["data-labels"]


def test_formats_agree():
    """A recipe names the data's content, so the format it came in leaves no trace."""
    for name, other in recipes.SAME_AS.items():
        assert recipes.table()[name] == recipes.table()[other]


def test_table_is_whole():
    """Each recipe has its line, each line its recipe, and different recipes different models."""
    digests = recipes.table()
    assert set(digests) == set(recipes.RECIPES) | {"data-images", "data-labels"}
    own = [digests[name] for name in recipes.RECIPES if name not in recipes.SAME_AS]
    assert len(set(own)) == len(own)


@pytest.mark.parametrize("old, new", [("--seed 3", "--seed 4"), ("--lr 0.2", "--lr 0.25")])
def test_a_changed_recipe_changes_the_model(old, new, quern, files, tmp_path, monkeypatch):
    """The comparison above can fail: the same command with one change gives other bytes."""
    name = "unit-30"
    changed = recipes.RECIPES[name].replace(old, new)
    assert changed != recipes.RECIPES[name]
    monkeypatch.setitem(recipes.RECIPES, name, changed)
    assert recipes.train([quern], name, files, tmp_path / "model") != recipes.table()[name]
