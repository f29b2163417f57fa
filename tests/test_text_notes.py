"""Notes of a training about layers that read positions of texts which they should not."""

import subprocess

import numpy as np
import pytest

PADDING = 65535
PADDED, AHEAD = "counts what fills up short texts", "reads tokens that the model is to tell"


@pytest.fixture(scope="module")
def notes(quern, tmp_path_factory):
    """notes(model, length, more): those of a training on 30 items of 8 positions, of texts of this length."""
    folder = tmp_path_factory.mktemp("notes")

    def ask(model, length, *more):
        x = np.random.default_rng(5).integers(0, 40, (30, 8)).astype(np.uint16)
        x[:, length:] = PADDING
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", np.arange(30, dtype=np.uint8) % 2)
        done = subprocess.run([quern, *map(str, ["train", "--data", folder / "x.npy", "--tokens", "ids", "--epochs", 1, "-o",
                                                 folder / "m.st", "--model", model, *more])],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return "".join(line for line in done.stderr.splitlines() if "note: " in line)

    return lambda model, length, task=False: ask(model, length, *(
        ["--task", "next"] if task else ["--labels", folder / "y.npy"]))


@pytest.mark.parametrize("body, layer", [
    ("batchnorm relu; pool mean", "layer 1, \"batchnorm relu\""),
    ("position learned; layernorm; pool mean", "layer 2, \"layernorm none\""),
    ("conv 4 1x1 relu; globalpool", "layer 2, \"globalpool\""),
    ("conv 4 1x3 relu; conv 4 1x3; pool max", "layer 2, \"conv 4 1x3 none\""),
    ("conv 4 1x3 relu; pool max", None), ("layernorm channels; pool mean", None), ("tanh", "layer 1, \"dense 2 softmax\""),
    ("", None)])
def test_layers_that_count_what_fills_up(notes, body, layer):
    begin = "embedding 40 8 tanh" if body == "tanh" else f"embedding 40 8; {body}".rstrip("; ")
    model = f"{begin}; dense 2 softmax"
    assert PADDED not in notes(model, 8)
    told = notes(model, 5)
    assert (PADDED in told) == bool(layer) and (not layer or layer in told), told


@pytest.mark.parametrize("body, layer", [
    ("conv 24 1x1; attention 2", "layer 2, \"attention 2\""), ("conv 24 1x1; attention 2 causal", None),
    ("conv 8 1x3", "layer 1, \"conv 8 1x3 none\"")])
def test_layers_that_read_what_comes_next(notes, body, layer):
    told = notes(f"embedding 40 8; {body}; conv 40 1x1 softmax", 8, task=True)
    assert (AHEAD in told) == bool(layer) and (not layer or layer in told), told
    assert ('add "causal"' in told) == (layer is not None and "attention" in layer)
