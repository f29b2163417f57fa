"""Normalisations for a user: the tensors of a file, predictions, replays, ranks and resumed runs."""

import json
import shlex
import subprocess

import numpy as np
import pytest

import ranks
import recipes
from test_layers import table, tensors  # noqa: F401

MODEL = ("conv 6 3x2; batchnorm relu; groupnorm 3; maxpool 2; dense 5; batchnorm; layernorm tanh; "
         "dense 3 softmax")


def run(quern, *words, cwd=None):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trained(quern, table, tmp_path_factory):  # noqa: F811
    model = tmp_path_factory.mktemp("norms") / "m"
    run(quern, "train", "--data", table[0], "--model", MODEL, "--shape", "2x8x3", "--epochs", 3, "--scale",
        "unit", "--batch", 20, "--grain", 6, "--valid", 0.2, "--keep", "best", "--threads", 2, "-o", model)
    return model


def grouped(x, groups, own):
    """As torch.nn.GroupNorm has it, in doubles."""
    parts = x.reshape(len(x), groups, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    shape = (-1,) + (1,) * (x.ndim - 2)
    return parts.reshape(x.shape) * own["weight"].reshape(shape) + own["bias"].reshape(shape)


def running(x, own):
    """As torch.nn.BatchNorm1d and 2d have it in evaluation."""
    shape = (-1,) + (1,) * (x.ndim - 2)
    mean, factor = own["running_mean"], own["weight"] / np.sqrt(own["running_var"] + 1e-5)
    return (x - mean.reshape(shape)) * factor.reshape(shape) + own["bias"].reshape(shape)


def applied(weights, x):
    own = [{name.split(".")[1]: w.astype(float) for name, w in weights.items()
            if name.startswith(f"layer{l}.")} for l in range(8)]
    view = np.lib.stride_tricks.sliding_window_view(x.reshape(len(x), 2, 8, 3), (3, 2), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", view, own[0]["weight"]) + own[0]["bias"][:, None, None]
    y = grouped(np.maximum(running(y, own[1]), 0), 3, own[2])
    y = y.reshape(len(x), 6, 3, 2, 1, 2).max((3, 5)).reshape(len(x), -1)
    y = running(y @ own[4]["weight"].T + own[4]["bias"], own[5])
    return np.tanh(grouped(y, 1, own[6])) @ own[7]["weight"].T + own[7]["bias"]


def outputs(text):
    rows = [line.split(",") for line in text.split()]
    return np.array([row[-3:] for row in rows if row[-1][:1].isdigit()], dtype=float)


def test_the_file_has_the_weights_of_other_tools(quern, table, trained):  # noqa: F811
    _, weights = tensors(trained)
    assert [name for name in weights if name.startswith(("layer1.", "layer2."))] == [
        "layer1.weight", "layer1.bias", "layer1.running_mean", "layer1.running_var", "layer2.weight",
        "layer2.bias"]
    assert all(weights[f"layer1.{name}"].shape == (6,) for name in ("weight", "running_var"))
    wanted = np.exp(applied(weights, table[1] / 255))
    got = outputs(run(quern, "predict", trained, "--data", table[0], "--outputs"))
    assert got == pytest.approx(wanted / wanted.sum(1, keepdims=True), abs=1e-5)


def test_a_prediction_is_that_of_its_item_alone(quern, table, trained, tmp_path):  # noqa: F811
    """On one item, by other instructions and on two ranks."""
    words = ["predict", trained, "--outputs", "--data"]
    all_of_them = run(quern, *words, table[0])
    assert run(quern, *words, table[0], "--isa", "scalar", "--threads", 3) == all_of_them
    assert ranks.run(quern, 2, *words, table[0])[0][1] == all_of_them
    lines = table[0].read_text().splitlines()
    one = tmp_path / "one.csv"
    one.write_text(lines[37] + "\n")
    assert (outputs(run(quern, *words, one)) == outputs(all_of_them)[37]).all()


def test_a_replay_has_the_same_bytes(quern, table, trained):  # noqa: F811
    assert "identical" in run(quern, "replay", trained, "--data", table[0], "--threads", 3)


@pytest.fixture(scope="module")
def files(quern, tmp_path_factory):
    return recipes.make_data([quern], tmp_path_factory.mktemp("data"))


def words_of(name, files):
    return ["train", *(a.format(**files) for a in shlex.split(recipes.RECIPES[name])), "--threads", "1"]


@pytest.mark.parametrize("name", ["batchnorm-adam", "frozen", "groupnorm-adam"])
def test_ranks(quern, files, tmp_path, name):
    ranks.run(quern, 3, *words_of(name, files), "--quiet", "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == recipes.table()[name]


@pytest.mark.parametrize("name", ["batchnorm-best", "frozen"])
def test_running_averages_are_in_a_checkpoint(quern, files, tmp_path, name):
    """A run goes on from the last checkpoint but one; also where layers have the averages of another model."""
    words = [*words_of(name, files), "--checkpoint", "state", "-o", "m"]
    run(quern, *words, "--checkpoint-every", "3", "--quiet", cwd=tmp_path)
    (tmp_path / "m").unlink()
    state = sorted((tmp_path / "state").glob("checkpoint-*"))
    assert len(state) > 1
    state[-1].unlink()
    said = run(quern, *words, "--resume", "--json", cwd=tmp_path)
    assert json.loads(said.splitlines()[-1])["resumed_from"] > 0
    assert recipes.sha256(tmp_path / "m") == recipes.table()[name]


@pytest.mark.parametrize("model, epochs, more, told", [
    ("batchnorm", 1, [], "after 1 step they still are 90 % of their first values"),
    ("batchnorm", 43, [], "after 43 steps they still are 1 %"),
    ("batchnorm", 44, [], ""), ("layernorm", 1, [], ""), ("batchnorm", 1, ["--init-from"], "")])
def test_few_steps_for_running_averages_are_told(quern, table, tmp_path, model, epochs, more, told):  # noqa: F811
    words = ["train", "--data", table[0], "--model", f"dense 4; {model}; dense 3 softmax", "--batch", 10**4,
             "--epochs", epochs, "--json"]
    if "--init-from" in more:
        run(quern, *words, "-o", tmp_path / "first")
        more = [*more, tmp_path / "first"]
    lines = run(quern, *words, *more, "-o", tmp_path / "m").splitlines()
    notes = [e["text"] for e in map(json.loads, lines) if e["event"] == "note"]
    assert any(told in note and "smaller --batch" in note for note in notes) if told else not notes


def test_a_grain_of_one_item_behind_features_learns_its_bias_only(quern, tmp_path, table):  # noqa: F811
    """One value has no deviation."""
    run(quern, "train", "--data", table[0], "--model", "dense 4; batchnorm; dense 3 softmax", "--epochs", 1,
        "--grain", 1, "-o", tmp_path / "m")
    _, weights = tensors(tmp_path / "m")
    assert (weights["layer1.weight"] == 1).all() and (weights["layer1.bias"] != 0).all()


@pytest.mark.parametrize("where", ["predict", "init"])
def test_a_negative_variance_is_refused(quern, table, trained, tmp_path, where):  # noqa: F811
    """Of a damaged file: its root would be NaN in a prediction, and nothing in a training."""
    data = bytearray(trained.read_bytes())
    size = int.from_bytes(data[:8], "little")
    begin = json.loads(data[8:8 + size])["layer1.running_var"]["data_offsets"][0]
    data[8 + size + begin:8 + size + begin + 4] = np.float32(-0.5).tobytes()
    bad = tmp_path / "bad"
    bad.write_bytes(data)
    words = (["predict", bad, "--data", table[0]] if where == "predict" else
             ["train", "--data", table[0], "--shape", "2x8x3", "--model", MODEL, "--init-from", bad])
    done = subprocess.run([quern, *map(str, words), "-o", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 1 and "a variance is negative" in done.stderr
    assert "layer1.running_var" in done.stderr and not (tmp_path / "out").exists()
