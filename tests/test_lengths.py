"""Items of unequal lengths (docs/exactness.md 25.37, 25.38): what fills them up changes nothing."""

import csv
import subprocess

import numpy as np
import pytest

import devices
import machine
from onnx_reader import Graph

PADDING = 65535
WORDS = 40
MODELS = {
    "pools": "embedding 40 12; concat { concat { pool mean | pool max } | concat { pool first | pool last } }; dense 2 softmax",
    "windows": "embedding 40 9; concat { conv 6 1x3 relu; pool max | conv 5 1x5 tanh; pool mean }; dense 2 softmax",
    "attention": "embedding 40 8; residual { layernorm channels; conv 16 1x1; attention 2 kv 1; conv 8 1x1 };"
                 " residual { conv 24 1x1; attention 1 causal window 3; conv 8 1x1 gelu }; pool mean; dense 2 softmax",
}


MANY = ("embedding 40 16; position learned tanh dropout 0.2; residual { rmsnorm; conv 48 1x1; position rotary 2; attention 2;"
        " conv 16 1x1 }; position sinusoid; product { conv 16 1x1 gelu | conv 16 1x1 }; layerscale 0.5; concat { pool max |"
        " pool last }; dense 2 softmax")
STATES = "embedding 40 8; concat { lstm 9 | gru 16 reverse }; lstm 7; pool last; dense 2 softmax"


def texts(positions, count=60):
    """Items of 0 to 11 words, one of them with a hole; the class is whether the first word is even."""
    draw = np.random.default_rng(3)
    x = np.full((count, positions), PADDING, np.uint16)
    for i in range(count):
        own = draw.integers(0, WORDS, i % 12)
        x[i, :len(own)] = own
    x[11, 4] = PADDING
    return x, np.array([row[0] % 2 for row in x], np.int64)


def run(quern, *words, environment=None):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    return done


def train(quern, folder, positions, model, *more, optimizer="adam", lr=0.05, on="cpu", environment=None):
    folder.mkdir(exist_ok=True)
    x, y = texts(positions)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    run(quern, "train", "--data", folder / "x.npy", "--labels", folder / "y.npy", "--tokens", "ids", "--model", model,
        "--epochs", 3, "--batch", 20, "--grain", 7, "--lr", lr, "--optimizer", optimizer, "--devices", on, "-o",
        folder / "m.st", *more, environment=environment)
    return folder / "m.st"


def tensors(path):
    """The bytes after the header, which says how many positions there are."""
    content = path.read_bytes()
    return content[8 + int.from_bytes(content[:8], "little"):]


def predicted(quern, model):
    return run(quern, "predict", model, "--data", model.parent / "x.npy", "--outputs").stdout


@pytest.mark.parametrize("name, arith", [*((name, "f32") for name in [*MODELS, "states"]), ("windows", "i14")])
def test_padding_changes_no_bit(quern, tmp_path, name, arith):
    """Twelve positions or forty: the same parameters, and the same answers."""
    model = {**MODELS, "states": STATES}[name]
    short = train(quern, tmp_path / "short", 12, model, "--arith", arith)
    long = train(quern, tmp_path / "long", 40, model, "--threads", 1, "--arith", arith)
    assert tensors(short) == tensors(long)
    told = [predicted(quern, model) for model in (short, long)]
    assert told[0] == told[1] and len(set(told[0].split())) > 20


def test_next_tokens_of_short_items(quern, tmp_path):
    """Neither what fills items up nor the order in which they are applied changes a number."""
    model = ("embedding 40 8; position sinusoid; residual { rmsnorm; conv 24 1x1; attention 2 causal; conv 8 1x1 };"
             " conv 40 1x1 softmax")
    told, made = [], []
    for positions in (12, 40):
        np.save(tmp_path / "x.npy", texts(positions)[0])
        made.append(tmp_path / f"{positions}.st")
        run(quern, "train", "--data", tmp_path / "x.npy", "--tokens", "ids", "--task", "next", "--model", model, "--epochs", 2,
            "--batch", 20, "--grain", 7, "--valid", 0.2, "--lr", 0.1, "--devices", "cpu", "-o", made[-1])
        told.append(run(quern, "predict", made[-1], "--data", tmp_path / "x.npy").stdout.splitlines())
    assert tensors(made[0]) == tensors(made[1]) and told[0] == told[1] and len(set(told[0])) > 50
    last = [line.split(",")[4:6] for line in told[0][1:]]
    assert all(label == "" and (token == "") == (i % 12 == 0) for i, (label, token) in enumerate(last))
    np.save(tmp_path / "x.npy", texts(40)[0][::-1])
    turned = run(quern, "predict", made[1], "--data", tmp_path / "x.npy").stdout.splitlines()
    assert [line.split(",", 1)[1] for line in turned[:0:-1]] == [line.split(",", 1)[1] for line in told[1][1:]]


def test_batches_of_like_lengths(quern, tmp_path):
    """The order depends on tokens alone, not on the number of positions."""
    made = [train(quern, tmp_path / name, positions, MODELS["pools"], *words)
            for name, positions, words in (("a", 12, ["--group-lengths", 2]), ("b", 40, ["--group-lengths", 2]), ("c", 12, []))]
    assert tensors(made[0]) == tensors(made[1]) != tensors(made[2])
    shown = run(quern, "model", "show", made[0], "--json").stdout
    assert '\\"group_lengths\\":2' in shown and "group_lengths" not in run(quern, "model", "show", made[2], "--json").stdout
    (tmp_path / "t.csv").write_text("label,x\n" + "0,1\n1,2\n" * 9)
    done = subprocess.run([quern, "train", "--data", tmp_path / "t.csv", "--group-lengths", "2", "-o", tmp_path / "t"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "only texts that are tokens have lengths to sort by" in done.stderr, done.stderr
    words = ["train", "--data", tmp_path / "a" / "x.npy", "--labels", tmp_path / "a" / "y.npy", "--tokens", "ids", "--model",
             "dense 2 softmax", "--group-lengths", 2, "-o", tmp_path / "t"]
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "without an embedding" in done.stderr, done.stderr


@pytest.mark.parametrize("decay", [[], ["--weight-decay", 0.3, "--clip", 0.1]])
def test_positions_that_no_item_has(quern, tmp_path, decay):
    """Their parameters decay, and otherwise stay; the first twelve are those of the shorter table."""
    load_file = pytest.importorskip("safetensors.numpy").load_file
    def learned(positions, *more, lr=0.05):
        made = train(quern, tmp_path / str(positions), positions, MANY, *more, optimizer="adamw", lr=lr)
        return load_file(made)["layer1.weight"], predicted(quern, made)

    begun, _ = learned(40, lr=1e-30)
    (short, said), (long, also) = learned(12, *decay), learned(40, *decay)
    assert said == also and len(set(said.split())) > 20
    ratio = long[12:] / begun[12:]
    assert np.array_equal(short, long[:12]) and np.ptp(ratio) < 1e-5 and (ratio.mean() < 0.95) == bool(decay)


def next_words(quern, folder, words, environment=None):
    """What a model of next tokens tells about items of forty places, and its parameters."""
    run(quern, "train", "--data", folder / "x.npy", "--tokens", "ids", "--task", "next", "--epochs", 1, "--batch", 20, "--grain", 7,
        "--valid", 0.2, "--lr", 0.1, "--model", "embedding 40 8; position learned; residual { rmsnorm; conv 24 1x1; attention 2"
        " causal; conv 8 1x1 }; conv 40 1x1 softmax", "-o", folder / "n.st", *words, environment=environment)
    told = run(quern, "predict", folder / "n.st", "--data", folder / "x.npy", "--logprobs", *words, environment=environment)
    return told.stdout, (folder / "n.st").read_bytes()


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[machine.LONG] * (kind != "cuda")) for kind in devices.KINDS])
def test_a_device_leaves_positions_out(quern, tmp_path, kind):
    """Forty positions, of which the items have eleven: a device computes sixteen, and the bytes of the processor."""
    names, environment = devices.KINDS[kind]()
    made = []
    for on, own in (("cpu", None), (names[0], environment)):
        for name, model in (("many", MANY), ("windows", MODELS["windows"])):
            path = train(quern, tmp_path / name, 40, model, "--group-lengths", 2, on=on, environment=own)
            told = run(quern, "predict", path, "--data", tmp_path / name / "x.npy", "--outputs", "--devices", on,
                       environment=own)
            made.append((path.read_bytes(), told.stdout))
        made.append(next_words(quern, tmp_path / "many", ["--devices", on], own))
    assert made[:3] == made[3:]


@pytest.mark.parametrize("name", [*MODELS, "states"])
def test_the_graph_knows_lengths(quern, tmp_path, name):
    model = train(quern, tmp_path / "m", 12, {**MODELS, "states": STATES}[name])
    run(quern, "model", "export", model, "-o", tmp_path / "m.onnx")
    run(quern, "predict", model, "--data", tmp_path / "m" / "x.npy", "--outputs", "-o", tmp_path / "p.csv")
    with open(tmp_path / "p.csv") as file:
        expected = np.array([[float(row["p0"]), float(row["p1"])] for row in csv.DictReader(file)])
    found = Graph((tmp_path / "m.onnx").read_bytes()).run(texts(12)[0].astype(float))["output"]
    assert np.ptp(expected) > 0.05 and np.abs(found - expected).max() < 2e-5


def test_pools_of_pixels_in_a_graph(quern, tmp_path):
    draw = np.random.default_rng(4)
    x, y = draw.integers(0, 9, (40, 30)), draw.integers(0, 2, 40)
    rows = [",".join(map(str, [label, *row])) for label, row in zip(y, x)]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    model = ("conv 4 3x3 tanh; concat { concat { pool mean | pool max } | concat { pool first | pool last } }; dense 2 softmax")
    run(quern, "train", "--data", tmp_path / "t.csv", "--shape", "1x5x6", "--model", model, "--epochs", 2, "-o", tmp_path / "m",
        "--scale", "unit")
    run(quern, "model", "export", tmp_path / "m", "-o", tmp_path / "m.onnx")
    run(quern, "predict", tmp_path / "m", "--data", tmp_path / "t.csv", "--outputs", "-o", tmp_path / "p.csv")
    with open(tmp_path / "p.csv") as file:
        expected = np.array([[float(row["p0"]), float(row["p1"])] for row in csv.DictReader(file)])
    found = Graph((tmp_path / "m.onnx").read_bytes()).run(x.reshape(-1, 1, 5, 6).astype(float))["output"]
    assert np.abs(found - expected).max() < 2e-5


def test_outputs_are_not_kept(quern, tmp_path):
    train(quern, tmp_path / "m", 12, MODELS["pools"])
    words = ["--data", tmp_path / "m" / "x.npy", "--labels", tmp_path / "m" / "y.npy", "--tokens", "ids", "--freeze", "0",
             "--init-from", tmp_path / "m" / "m.st", "--epochs", "1", "--lr", "0.01", "-o", tmp_path / "n"]
    done = subprocess.run([quern, "train", *map(str, words), "--cache-features"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "lengths of items" in done.stderr, done.stderr
    run(quern, "train", *words)


@pytest.mark.parametrize("model, said", [("embedding 40 8; pool; dense 2 softmax", "pool mean"),
                                         ("embedding 40 8; pool 2; dense 2 softmax", "maxpool"),
                                         ("embedding 40 8; pool mean relu; dense 2 softmax", "relu")])
def test_what_is_no_pool(quern, tmp_path, model, said):
    np.save(tmp_path / "x.npy", texts(12)[0])
    np.save(tmp_path / "y.npy", texts(12)[1])
    done = subprocess.run([quern, "train", "--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--tokens", "ids",
                           "--model", model, "-o", tmp_path / "m"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr, done.stderr
