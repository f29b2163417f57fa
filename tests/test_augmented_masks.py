"""Masks that move with their pictures in training (docs/exactness.md 24.22, 24.23)."""

import sys
from pathlib import Path

import pytest

import python_package
import ranks
from test_oracle import train as train_both

np = pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
from philox import word  # noqa: E402

COMMON = ["--shape", "3x8x7", "--lr", "0.5", "--batch", "7", "--grain", "3", "--epochs", "2", "--seed", "5",
          "--valid", "0.2"]
CLASSES = ["--model", "conv 3 3x3 relu; conv 3 1x1 softmax", "--loss", "cross-entropy"]
TWO = ["--model", "conv 3 3x3 relu; conv 1 1x1 sigmoid", "--loss", "binary"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("masks"), np.random.default_rng(7)
    x = rng.integers(0, 256, (24, 3, 8, 7)).astype(np.uint8)
    masks = (x[:, 0] // 86).astype(np.uint8)
    masks[rng.random(masks.shape) < 0.2] = 255
    masks[0] = 255
    for name, array in {"x": x.reshape(24, -1), "floats": x.reshape(24, -1) / np.float32(9), "masks": masks,
                        "halves": np.where(masks == 2, 1, masks)}.items():
        np.save(folder / f"{name}.npy", array)
    return folder


JOBS = {
    "words": ("x", "masks", [*CLASSES, "--augment", "resizedcrop ratio 0.3 2; flip; rotate 40 bilinear; pad 1; cutout 3; crop",
                             "--cutmix", "0.5", "--smoothing", "0.1"]),
    "floats": ("floats", "masks", [*CLASSES, "--augment", "pad 2; crop; flip", "--cutmix", "1"]),
    "two": ("x", "halves", [*TWO, "--augment", "rotate 90; resizedcrop", "--arith", "i14"]),
}


@pytest.mark.parametrize("name", JOBS)
def test_both_programs_give_the_same_model(quern, files, tmp_path, name):
    data, labels, words = JOBS[name]
    scale = "channel" if data == "floats" else "unit"
    given = ["--data", files / f"{data}.npy", "--labels", files / f"{labels}.npy", "--scale", scale, *COMMON, *words]
    train_both(given, tmp_path / "one")
    if name == "words":
        ranks.run(quern, 2, "train", *given, "--optimizer", "sgd", "--quiet", "-o", tmp_path / "ranks")
        assert (tmp_path / "ranks").read_bytes() == (tmp_path / "one").read_bytes()


def outside(seed, items, size, pad):
    """How many pixels of each mask "pad; crop" takes from outside, in the first epoch; NumPy's own sum (17.10)."""
    first = np.array([[int(word(seed, 6, 0, 0, i, np.array([d]))[0]) * (2 * pad + 1) >> 32 for d in (0, 1)]
                      for i in range(items)])
    shown = size - abs(first - pad)
    return size * size - shown.prod(axis=1)


def test_every_pixel_keeps_its_class():
    """A network that is right about every pixel stays so, and the pixels that count are those inside."""
    python_package.folder()
    import quern

    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (40, 1, 9, 9)).astype(np.uint8) * 255
    masks = x[:, 0] // 255
    given = {"model": "conv 2 1x1 softmax", "scale": "unit", "seed": 2}
    exact = quern.train(x, masks, lr=1.0, epochs=20, **given)
    assert exact.evaluate(x, masks)["accuracy"] == 1
    for words, least in (("flip", 3240), ("pad 3; flip; crop", None), ("rotate 180", 2500), ("rotate 20; jitter brightness 0.1; flip", 2500)):
        score = quern.train(x, masks, init_from=exact, lr=1e-6, epochs=1, augment=words, **given).report.train
        assert score.accuracy == 1 and score.items >= (least or 0)
        if least is None:
            assert score.items == 3240 - outside(2, 40, 9, 3).sum()
    for words in ({"augment": "resizedcrop scale 0.5 1"}, {"cutmix": 1.0}):
        score = quern.train(x, masks, init_from=exact, lr=1e-6, epochs=1, **given, **words).report.train
        assert score.items == 3240 and score.accuracy > 0.8
    assert score.accuracy == 1
