"""Augmented images and scaling per channel (docs/exactness.md 17.10, 17.11) in whole runs: what
interrupts or divides a run changes no byte, and what has no pixels is refused."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import augment  # noqa: E402

import ranks  # noqa: E402

MODEL = "conv 4 3x3 stride 2 relu; dense 3 softmax"
WORDS = "pad 2; crop; flip; cutout 3"
NEW_WORDS = "cutout 3; resizedcrop scale 0.01 1; flip; jitter hue 0.5 saturation 1 contrast 1 brightness 1; rotate 90; blur 13"


@pytest.fixture
def images(tmp_path):
    """Bytes and floats of 3 x 9 x 7, with their labels."""
    random = np.random.default_rng(5)
    labels = random.integers(0, 3, 70)
    values = random.integers(0, 200, (70, 189)) + 25 * labels[:, None]
    for name, table in (("bytes", values.astype(np.uint8)), ("floats", values.astype("<f4") / 7)):
        np.savez(tmp_path / f"{name}.npz", X=table, y=labels)
    return tmp_path


def load_header(path):
    content = path.read_bytes()
    return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]


def train(run_quern, images, *more, kind="bytes", out="m", status=0):
    scale = "unit" if kind == "bytes" else "standard"
    return run_quern("train", "--data", images / f"{kind}.npz", "--shape", "3x9x7",
                     "--model", MODEL, "--scale", scale, "--lr", "0.02", "--epochs", "3", "--batch", "16",
                     "--seed", "4", "--augment", WORDS, *more, "-o", images / out, status=status)


@pytest.mark.parametrize("kind, mix", [("bytes", "--cutmix"), ("floats", "--mixup")])
def test_a_resumed_run_and_a_replay(run_quern, images, kind, mix):
    """Interrupted in the middle of an epoch, by a checkpoint that is later than its beginning."""
    mix = [mix, "0.8"]
    train(run_quern, images, *mix, kind=kind)
    train(run_quern, images, *mix, "--threads", "3", "--checkpoint", images / "c", "--checkpoint-every", "7",
          kind=kind, out="again")
    assert (images / "again").read_bytes() == (images / "m").read_bytes()
    end = max((images / "c").glob("checkpoint-*"))
    assert "15" in end.name
    end.unlink()
    train(run_quern, images, *mix, "--checkpoint", images / "c", "--resume", kind=kind, out="resumed")
    assert (images / "resumed").read_bytes() == (images / "m").read_bytes()
    run_quern("replay", images / "m", "--data", images / f"{kind}.npz",
              "--shape", "3x9x7")
    recipe = json.loads(load_header(images / "m")["recipe"])
    assert (recipe["contract"], recipe[mix[0][2:]]) == (8, 0.8)


def test_only_training_items_change(run_quern, images):
    """The losses of a validation set do not tell of words that a run did not train with."""
    losses = []
    for more in ([], ["--augment", NEW_WORDS], ["--mixup", "1"], ["--cutmix", "1"]):
        done = run_quern("train", "--data", images / "bytes.npz", "--shape", "3x9x7", "--model", MODEL,
                         "--valid", "0.3", "--scale", "unit", "--epochs", "1", "--lr", "1e-30", *more,
                         "--json", "-o", images / "m")
        epoch, = (json.loads(line) for line in done.stdout.splitlines() if '"event":"epoch"' in line)
        losses.append((epoch["train_loss"], epoch["valid_loss"]))
    assert len({trained for trained, _ in losses}) == 4
    assert len({valid for _, valid in losses}) == 1


@pytest.mark.parametrize("more, says", [
    (["--augment", "pad 4"], ["write crop after it"]),
    (["--augment", "flip; turn"], ["augmentation, column 7", 'unknown word "turn"']),
    (["--augment", "pad 7; crop"], ["too much for images of 9x7", "use 6 at most", "--augment"]),
    (["--augment", "cutout 8"], ["too much for images of 9x7", "use 7 at most"]),
    (["--mixup", "1", "--cutmix", "1"], ["in one way only", "leave one of the two out"]),
    (["--mixup", "1.5"], ["the mixture of items is 1.5", "above 0, up to 1", "--mixup"]),
    (["--cutmix", "1", "--class-weight", "balanced"], ["no weight of an item or a class", "--cutmix"]),
    (["--cutmix", "1", "--loss", "mse"], ["--cutmix does nothing with --loss mse"]),
    (["--model", "dense 3 softmax", "--cutmix", "1"], ["no pixels", "--shape", "or use --mixup"]),
    (["--augment", "blur 15"], ["too much for images of 9x7", "use 13 at most"]),
    (["--augment", "jitter"], ["augmentation, column 1", "changes nothing", "hue 0.1"]),
    (["--shape", "21x9x1", "--augment", "jitter hue 0.1"], ["red, green and blue", "21 channels", "brightness"]),
    (["--data", "floats.npz", "--scale", "standard", "--augment", "flip; rotate 9"],
     ["not all whole numbers", "use pad, crop, flip and cutout", "--augment"]),
    (["--model", "dense 3 softmax", "--augment", "flip"], ["no pixels", "--augment", "--shape"]),
])
def test_nonsense_is_refused(run_quern, images, more, says):
    shape = [] if "--model" in more else ["--shape", "3x9x7", "--model", MODEL]
    more = [images / word if word == "floats.npz" else word for word in more]
    data = [] if "--data" in more else ["--data", images / "bytes.npz"]
    shape = shape[2:] if "--shape" in more else shape
    done = run_quern("train", *data, *shape, *more, "-o", images / "m", status=2)
    for words in says:
        assert words in done.stderr


@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_channels_have_a_mean_each(run_quern, images, kind):
    """NumPy's mean and deviation; predictions are those of the formula."""
    data = ["--data", images / f"{kind}.npz", "--shape", "3x9x7"]
    model = "dense 3 softmax"
    run_quern("train", *data, "--model", model, "--scale", "channel", "--epochs", "1",
              "-o", images / "m")
    values, made = np.load(images / f"{kind}.npz")["X"].reshape(-1, 3, 63), load_file(images / "m")
    assert made["scale.mean"].shape == made["scale.deviation"].shape == (3,)
    np.testing.assert_allclose(made["scale.mean"], values.mean((0, 2), dtype=float), rtol=1e-6)
    np.testing.assert_allclose(made["scale.deviation"], values.std((0, 2), dtype=float), rtol=1e-6)
    run_quern("predict", images / "m", *data, "--outputs", "-o", images / "p.csv")
    x = (values - made["scale.mean"][:, None]) / made["scale.deviation"][:, None]
    z = x.reshape(len(x), -1) @ made["layer0.weight"].T + made["layer0.bias"]
    scores = np.exp(z - z.max(1, keepdims=True))
    found = np.genfromtxt(images / "p.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(found[:, -3:], scores / scores.sum(1, keepdims=True), atol=1e-5)
    run_quern("replay", images / "m", *data)


def test_scaling_of_channels_is_kept_or_refused(run_quern, images):
    data = ["--data", images / "bytes.npz", "--model", "dense 3 softmax", "--epochs", "1"]
    run_quern("train", *data, "--shape", "3x9x7", "--scale", "channel", "-o", images / "m")
    more = ["--data", images / "floats.npz", *data[2:], "--init-from", images / "m", "--init-scale", "keep", "-o", images / "n"]
    run_quern("train", *more, "--shape", "3x7x9", "--seed", "2")
    assert (load_file(images / "m")["scale.mean"] == load_file(images / "n")["scale.mean"]).all()
    assert "number of channels" in run_quern("train", *more, "--shape", "9x3x7", status=1).stderr
    done = run_quern("train", *data, "--scale", "channel", "-o", images / "n", status=2)
    assert 'the scaling "channel" is for images' in done.stderr and "--shape" in done.stderr


@pytest.mark.parametrize("words", [WORDS, NEW_WORDS, "rotate 180 bilinear fill 99"])
def test_sheet_shows_what_training_sees(run_quern, images, words):
    """A row is the first image of a class, and the oracle's in 15 epochs with seed 1."""
    file = images / "bytes.npz"
    run_quern("data", "info", file, "--shape", "3x9x7", "--sheet", images / "s.png", "--augment", words)
    sheet = np.asarray(Image.open(images / "s.png"))
    values, labels = np.load(file)["X"], np.load(file)["y"]
    want = np.full((2 + 3 * 11, 2 + 16 * 9, 3), 255, np.uint8)
    for kind in range(3):
        item = int(np.argmax(labels == kind))
        drawn = [values[item:item + 1]] + [augment.values(words, values, (3, 9, 7), 1, epoch, [item])
                                           for epoch in range(15)]
        for i, picture in enumerate(drawn):
            want[2 + 11 * kind:11 + 11 * kind, 2 + 9 * i:9 + 9 * i] = picture.reshape(3, 9, 7).transpose(1, 2, 0)
    assert np.array_equal(sheet, want)
    more = ["data", "info", file, "--shape", "3x9x7", "--augment"]
    assert "--sheet" in run_quern(*more, "flip", status=2).stderr
    told = run_quern(*more, "cutout 9", "--sheet", images / "t.png", status=2).stderr
    assert "use 7 at most" in told and not (images / "t.png").exists()


def test_given_numbers_of_channels(tmp_path, run_quern):
    """They are in the model as fitted ones are; the words that say them have one form."""
    data = np.random.default_rng(8).integers(0, 256, (30, 3 * 4 * 5), np.uint8)
    np.savez(tmp_path / "b.npz", x=data, y=np.arange(30) % 2)
    np.savez(tmp_path / "f.npz", x=data.astype("<f4") / 300, y=np.arange(30) % 2)

    def tensors(path):
        content = path.read_bytes()
        head = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
        return json.loads(head["__metadata__"]["recipe"]), load_file(path)

    def made(name, scale, file="b.npz"):
        run_quern("train", "--data", tmp_path / file, "--shape", "3x4x5", "--model", "conv 2 3x3 relu; dense 2 softmax",
                  "--scale", scale, "--epochs", "1", "-o", tmp_path / name)
        return tensors(tmp_path / name)

    recipe, found = made("m", "imagenet")
    text = "0.485,0.456,0.406/0.229,0.224,0.225"
    assert (recipe["contract"], recipe["scale"], recipe["scale_numbers"]) == (8, "channel", text)
    for name, part in zip(("scale.mean", "scale.deviation"), text.split("/")):
        assert np.array_equal(found[name], np.array(part.split(","), "f4") * np.float32(255))
    made("n", " .4850, 0.456,4.06e-1 / 0.229,0.224,.225")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    assert "identical" in run_quern("replay", tmp_path / "m", "--data", tmp_path / "b.npz").stdout
    _, found = made("f", "-0,0.5,2/0.25,1,3", "f.npz")
    assert found["scale.mean"].tolist() == [0, 0.5, 2] and found["scale.deviation"].tolist() == [0.25, 1, 3]
    assert not np.signbit(found["scale.mean"][0])
    again = ["train", "--data", tmp_path / "b.npz", "--shape", "3x4x5", "--init-from", tmp_path / "m", "--epochs", "1",
             "--model", "conv 2 3x3 relu; dense 2 softmax", "-o", tmp_path / "k"]
    run_quern(*again, "--init-scale", "keep")
    recipe, kept = tensors(tmp_path / "k")
    assert recipe["contract"] == 3 + 3 and "scale_numbers" not in recipe and kept["scale.mean"][0] == np.float32(123.675)
    told = run_quern(*again, "--init-scale", "keep", "--scale", "imagenet", status=2).stderr
    assert "--init-scale" in told and "leave one" in told
    for scale in ("/", "1/1", "1,2/3,4", "1,2,3/1,2", "1,2,3/0,1,1", "1,2,3/1,1,-1", "1,nan,1/1,1,1", "1,1,1/1,1,1/1,1,1",
                  "1,1,1,/1,1,1,", ",,/,,", "1 1 1/1 1 1", "1,1,9e9/1,1,1", "1,1,1/1,1,1e-9", "1,1,0x1/1,1,1",
                  ",".join("1" * 17) + "/" + ",".join("1" * 17), "/" * 900):
        told = run_quern("train", "--data", tmp_path / "b.npz", "--shape", "3x4x5", "--scale", scale, "-o", tmp_path / "x",
                         status=2).stderr
        assert "channels" in told and "at --scale" in told, scale
    for old, new in ((b"0.485,", b"0.4850,"), (b"0.485,0.456,0.406/0.229,0.224", b"0.485/0.229,0.224,0.225")):
        content = (tmp_path / "m").read_bytes()
        new = new.ljust(len(old)) if len(new) < len(old) else new
        size = int.from_bytes(content[:8], "little")
        head = content[8:8 + size].replace(old, new)
        (tmp_path / "w").write_bytes(len(head).to_bytes(8, "little") + head + content[8 + size:])
        assert run_quern("model", "show", tmp_path / "w", status=None).returncode


def test_flips(run_quern, quern, images):
    """Means of the outputs for images and for their mirror images, as NumPy computes them from two predictions;
    among ranks, too. What has no images, or is not a network, is refused."""
    train(run_quern, images)
    with np.load(images / "bytes.npz") as all_items:
        values, labels = all_items["X"], all_items["y"]
    np.savez(images / "other.npz", X=values.reshape(-1, 3, 9, 7)[..., ::-1].reshape(values.shape), y=labels)

    def predict(data, *more):
        rows = run_quern("predict", images / "m", "--data", images / data, "--outputs", *more).stdout.splitlines()
        return np.array([line.split(",") for line in rows[1:]], np.float32)

    plain, other, both = predict("bytes.npz"), predict("other.npz"), predict("bytes.npz", "--flips")
    outputs = (plain[:, 4:] + other[:, 4:]) * np.float32(0.5)
    assert not np.array_equal(plain[:, 4:], outputs)
    assert np.array_equal(both[:, 4:], outputs)
    assert np.array_equal(both[:, 2], outputs.argmax(1)) and np.array_equal(both[:, 3], outputs.max(1))
    right = int((outputs.argmax(1) == labels).sum())
    shown = run_quern("evaluate", images / "m", "--data", images / "bytes.npz", "--flips").stdout
    assert f"({right} of 70)" in shown
    ranks.run(quern, 2, "predict", images / "m", "--data", images / "bytes.npz", "--flips", "--outputs", "--threads",
              "1", "-o", images / "r.csv")
    run_quern("predict", images / "m", "--data", images / "bytes.npz", "--flips", "--outputs", "-o", images / "p.csv")
    assert (images / "r.csv").read_bytes() == (images / "p.csv").read_bytes()
    run_quern("train", "--data", images / "floats.npz", "--model", "dense 3 softmax", "--epochs", "1", "-o", images / "f")
    run_quern("fit", "kmeans", "--data", images / "floats.npz", "--set", "clusters=2", "-o", images / "k")
    for model, words in (("f", "the items are not images"), ("k", "flips are for networks")):
        done = run_quern("predict", images / model, "--data", images / "floats.npz", "--flips", status=None)
        assert done.returncode != 0 and words in done.stderr and "--flips" in done.stderr
