"""Convolutions and pools for a user: shapes of items, replay, plans, and what a model file means."""

import json
import subprocess

import numpy as np
import pytest

MODEL = "conv 5 3x2 stride 2x1 tanh; maxpool 2x1; dense 3 softmax"
SHAPE = (2, 8, 3)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """60 items of 2 x 8 x 3 pixels as a CSV table, which says nothing of pixels."""
    generator = np.random.default_rng(5)
    kinds = generator.integers(0, 3, 60)
    values = generator.integers(0, 90, (3, 48))[kinds] + generator.integers(0, 90, (60, 48))
    path = tmp_path_factory.mktemp("layers") / "t.csv"
    path.write_text("".join(f"{kind}," + ",".join(map(str, row)) + "\n"
                            for kind, row in zip(kinds, values)))
    return path, values


def run(quern, *words):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)


def train(quern, table, model, *more):
    done = run(quern, "train", "--data", table, "--model", MODEL, "--epochs", 2, "--scale", "unit", "-o",
               model, "--shape", "2x8x3", "--threads", 2, *more)
    assert done.returncode == 0, done.stderr
    return done


def tensors(path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    recipe = json.loads(header.pop("__metadata__")["recipe"])
    body = content[8 + length:]
    return recipe, {name: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
                    for name, t in header.items()}


def logits(weights, x):
    """The network above with the weights of the file, in the order of PyTorch, in doubles."""
    kernel, bias = weights["layer0.weight"].astype(float), weights["layer0.bias"].astype(float)
    x = x.reshape(len(x), *SHAPE)
    rows, columns = (8 - 3) // 2 + 1, 3 - 2 + 1
    y = np.empty((len(x), 5, rows, columns))
    for i in range(rows):
        for j in range(columns):
            patch = x[:, None, :, 2 * i:2 * i + 3, j:j + 2]
            y[:, :, i, j] = (patch * kernel).sum((2, 3, 4)) + bias
    y = np.tanh(y)
    y = np.maximum(y[:, :, 0:2:2], y[:, :, 1:2:2])  # one row of windows fits into three rows
    return y.reshape(len(x), -1) @ weights["layer2.weight"].T.astype(float) + weights["layer2.bias"]


def test_the_file_has_the_weights_of_other_tools(quern, table, tmp_path):
    path, values = table
    train(quern, path, tmp_path / "m")
    recipe, weights = tensors(tmp_path / "m")
    assert (recipe["contract"], recipe["shape"]) == (5, "2x8x3")
    assert [weights[name].shape for name in ("layer0.weight", "layer2.weight")] == [(5, 2, 3, 2), (3, 10)]
    assert "layer1.weight" not in weights
    wanted = np.exp(logits(weights, values / 255))
    done = run(quern, "predict", tmp_path / "m", "--data", path, "--outputs", "-o", tmp_path / "p.csv")
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in (tmp_path / "p.csv").read_text().split()]
    got = np.array([row[-3:] for row in rows if row[-1][:1].isdigit()], dtype=float)
    assert got == pytest.approx(wanted / wanted.sum(1, keepdims=True), abs=1e-5)


def test_a_replay_takes_the_shape_of_the_model(quern, table, tmp_path):
    train(quern, table[0], tmp_path / "m")
    done = run(quern, "replay", tmp_path / "m", "--data", table[0])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words, said", [
    ([], "the data has no pixels"),
    (["--shape", "2x8x4"], "not an image of the shape 2x8x4"),
    (["--shape", "1x1x48"], "does not fit into 1x48 pixels"),
])
def test_refusals(quern, table, tmp_path, words, said):
    done = run(quern, "train", "--data", table[0], "--model", MODEL.replace("conv 5", "conv 4"),
               "-o", tmp_path / "m", *words)
    assert done.returncode != 0 and said in done.stderr and len(done.stderr.splitlines()) > 1
    assert not (tmp_path / "m").exists()


def test_a_start_from_other_layers(quern, tmp_path):
    """Shapes and parameters agree in all of these networks: what differs is how they are used."""
    file = tmp_path / "t.csv"
    file.write_text("".join(f"{k % 3}" + f",{k},{9 * k % 7}" * 8 + "\n" for k in range(12)))
    body = "conv 8 3; {norm}; residual {{ conv 8 3 | conv 8 1 }} relu; {pool}; dense 3 softmax"

    def train(out, text, *more):
        return run(quern, "train", "--data", file, "--shape", "1x4x4", "--epochs", 1, "--model", text, "-o",
                   tmp_path / out, *more)
    usual = {"norm": "groupnorm 4", "pool": "maxpool 2"}
    assert train("a", body.format(**usual)).returncode == 0
    start = ["--init-from", tmp_path / "a"]
    plain = body.format(**usual)
    for text, said in ((body.format(**usual | {"norm": "groupnorm 2"}), '"groupnorm 4 none" for an input of 8x4x4, that '
                        'of this network "groupnorm 2 none"'),
                       (body.format(**usual | {"pool": "avgpool 2"}), '"avgpool 2x2"'),
                       (body.format(**usual | {"pool": "maxpool 1 stride 2"}), '"maxpool 1x1 stride 2"'),
                       (plain.replace("conv 8 3;", "conv 8 3 dilation 2;"), '"conv 8 3x3 dilation 2 none"'),
                       (plain.replace("{ conv 8 3 |", "{ conv 8 3 groups 2 |"), '"conv 8 3x3 groups 2 none"'),
                       (plain.replace("residual {", "").replace("} relu", "").replace("|", ";"),
                        '"conv 8 1x1 none" for an input of 8x4x4 from layer 1, that of this network "conv 8 1x1 none" for '
                        'an input of 8x4x4 from layer 2\n')):
        done = train("b", text, *start)
        assert done.returncode == 1 and said in done.stderr and "at --init-from" in done.stderr, done.stderr
    for text in (plain, plain.replace("4;", "4 tanh dropout 0.5;").replace("relu", "gelu")):
        assert train("b", text, *start).returncode == 0


def test_plans_and_trials_know_the_shape(quern):
    team = ["--team", "host(cpu 10k)"]
    # 28x28: 8 * 9 + 8, then 8 * 14 * 14 * 10 + 10; 3x6x4: 8 * 27 + 8, then 8 * 3 * 2 * 10 + 10
    for shape, parameters in (([], "15,770"), (["--shape", "3x6x4"], "714")):
        done = run(quern, "plan", "--model", "conv 8 3; maxpool 2; dense 10 softmax", *team, *shape)
        assert f"{parameters} parameters" in done.stdout, done.stderr
    done = run(quern, "devices", "--model", "conv 8 3; maxpool 2; dense 10 softmax", "--shape", "3x6x4",
               "--seconds", "0.1", "--devices", "cpu")
    assert "72 features" in done.stdout, done.stderr
    for command in (["plan", *team], ["devices", "--seconds", "0.1"]):
        done = run(quern, *command, "--model", "conv 8 3; dense 10", "--features", 12)
        assert done.returncode != 0 and "has no pixels" in done.stderr
        done = run(quern, *command, "--model", "conv 8 3; dense 10", "--features", 12, "--shape", "3x4")
        assert "exclude each other" in done.stderr
        done = run(quern, *command, "--model", "conv 8 3; dense 10", "--shape", "3by4")
        assert "is not the shape of an image" in done.stderr
