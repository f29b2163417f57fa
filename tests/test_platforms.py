"""Other processors and C libraries: 32 bits, the other byte order, musl. Recipes give their digests
there too, and data, checkpoints and models go from one machine to the other and back.

The optimised 64-bit Arm build runs every recipe in test_matrix.py.
"""

import subprocess

import pytest

import builds
import machine
import ranks
import recipes

PLATFORMS = ["aarch64-quick", *(pytest.param(name, marks=machine.LONG)
                                for name in ("s390x", "armhf", "riscv64", "i386", "musl"))]
# Decimals that are hard to round, integers with all that is random, subnormal numbers.
RECIPES = ["hard-standard", "i14-deep-dropout", "tiny-adam"]
# One recipe with the state of an optimiser, in steps enough for two checkpoints.
JOB = ["--data", "{decimals}", "--label", "last", "--scale", "standard", "--model",
       "dense 12 tanh; dense 10 softmax", "--loss", "cross-entropy", "--optimizer", "adam",
       "--lr", "0.01", "--epochs", "2", "--seed", "3", "--batch", "64", "--checkpoint-every", "4"]


@pytest.fixture(scope="session")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


@pytest.fixture(params=PLATFORMS)
def other(request):
    """How to run the program of that platform."""
    return builds.command(request.param, builds.ready(request.param) / "quern")


def run(command, *words):
    done = subprocess.run([*command, *map(str, words)], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.parametrize("name", RECIPES)
def test_recipe(other, name, files, tmp_path):
    digest = recipes.train(other, name, files, tmp_path / "m", "--threads", "2")
    assert digest == recipes.table()[name]


def test_written_data(other, files, tmp_path):
    """What the program draws and writes: IDX and CSV, and the digest of decimals and of bytes."""
    images, labels = recipes.synth(other, tmp_path)
    assert images.read_bytes() == files["images"].read_bytes()
    assert labels.read_bytes() == files["labels"].read_bytes()


def test_tokens(other, quern, tmp_path):
    """Rows of numbers, items that share one, and texts have the digests of this machine."""
    (tmp_path / "a.bin").write_bytes(bytes(range(200)) * 3)
    (tmp_path / "a.txt").write_text("the quick brown fox\n" * 20)
    for words in ("a.bin", "--tokens", "ids"), ("a.txt", "--tokens", "words"):
        info = ["data", "info", tmp_path / words[0], *words[1:], "--context", 9, "--json"]
        assert run(other, *info) == run([quern], *info)


def train(command, words, state, out, *more):
    run(command, "train", *words, "--checkpoint", state, "-o", out, "--quiet", *more)
    return recipes.sha256(out)


def test_checkpoints_and_models_cross(other, quern, files, tmp_path):
    """Begun here and ended there, and the reverse; the predictions of the model agree."""
    words = [word.format(**files) for word in JOB]
    digest, sides, last = {}, {"here": [quern], "there": other}, {}
    for side, command in sides.items():
        digest[side] = train(command, words, tmp_path / side, tmp_path / f"{side}.m")
        first, last[side] = sorted((tmp_path / side).glob("checkpoint-*.safetensors"))
        last[side] = last[side].rename(tmp_path / f"{side}.last")
    assert digest["there"] == digest["here"]
    assert last["there"].read_bytes() == last["here"].read_bytes()
    for begun, ended in (("here", "there"), ("there", "here")):
        out = tmp_path / f"{ended}.resumed"
        told = run(sides[ended], "train", *words, "--checkpoint", tmp_path / begun, "--resume",
                   "-o", out)
        assert "resumed from step 8" in told and recipes.sha256(out) == digest["here"]
    predict = ["predict", tmp_path / "here.m", "--data", files["decimals"], "--label", "last",
               "--outputs"]
    assert run(other, *predict) == run([quern], *predict)


def together(quern, name, files, out):
    """Two ranks, the second on that platform: what both ended with, wrote and said."""
    program = builds.command(name, builds.ready(name) / "quern")
    words = [word.format(**files) for word in JOB[:-2]]
    with ranks.Ranks(quern, 2, "train", *words, "-o", out, "--quiet",
                     programs={1: program}) as run_of:
        return run_of.wait()


def test_ranks_of_one_layout(quern, files, tmp_path):
    assert [code for code, _, _ in together(quern, "aarch64-quick", files, tmp_path / "m")] == [0, 0]
    run([quern], "train", *[word.format(**files) for word in JOB[:-2]], "-o", tmp_path / "alone")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "alone").read_bytes()


@machine.LONG
@pytest.mark.parametrize("name", ["s390x", "i386"])
def test_ranks_of_unlike_layouts_refuse_each_other(quern, name, files, tmp_path):
    for code, _, said in together(quern, name, files, tmp_path / "m"):
        assert code == 1 and "has another layout of numbers in memory" in said
    assert not (tmp_path / "m").exists()


@machine.LONG
@pytest.mark.parametrize("name", ["armhf", "i386"])
def test_sizes_beyond_32_bits(name, tmp_path):
    """16,449 pictures of 511 x 511 pixels, which the padding makes of one each, have 2^32 + 212,033
    rows: more than the memory of a process, and no small number of them."""
    command = builds.command(name, builds.ready(name) / "quern")
    table = tmp_path / "t.csv"
    table.write_text("".join(f"{i % 2},{i % 9}\n" for i in range(16449)))
    done = subprocess.run([*command, "train", "--data", str(table), "--shape", "1x1", "--model",
                           "conv 1 1x1 pad 255; globalpool; dense 2 softmax", "--batch", "20000",
                           "--devices", "cpu", "-o", str(tmp_path / "m")],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "of memory beside the data" in done.stderr
