"""`quern model import` with what files say about images and classes: timm's config.json, lists of names."""

import csv
import json
import math

import numpy as np
import pytest

import test_state_dict

MEAN, DEVIATION = [0.5, 0.25, 0.125], [0.25, 0.5, 0.3]


def config(**change):
    """As timm writes it; crop_pct keeps 8 of 10 pixels, which is 9.99... in float32."""
    images = {"input_size": [3, 8, 8], "test_input_size": [3, 10, 10], "interpolation": "bicubic", "crop_pct": 0.8,
              "test_crop_pct": 1.0, "crop_mode": "center", "mean": MEAN, "std": DEVIATION, "num_classes": 1000, "tag": None}
    whole = {"architecture": "resnet18", "num_classes": 3, "label_names": ["n1", "n2", "n3"],
             "label_descriptions": {"n3": "crane", "n1": "crane", "n2": "dog, small", "n0": "x"}, "pretrained_cfg": images}
    for key, value in change.items():
        where = images if key in images and key != "num_classes" else whole
        where[key] = value
        if value is ...:
            del where[key]
    return whole


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """A network of one layer, for 8 x 8 and for 10 x 10 pixels."""
    folder, draw = tmp_path_factory.mktemp("state"), np.random.default_rng(4)
    for side in (8, 10):
        weight = draw.normal(0, 0.2, (3, 3 * side * side)).astype("f4")
        test_state_dict.write(folder / f"s{side}", {"fc.weight": weight, "fc.bias": np.arange(3) / 8})
        np.save(folder / f"w{side}.npy", weight)
    return folder


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Smooth colours in both directions; one lies on its side, and its Exif data say so."""
    from PIL import Image
    folder, draw = tmp_path_factory.mktemp("photographs"), np.random.default_rng(8)
    for k, (height, width) in enumerate([(40, 60), (61, 32), (8, 8), (9, 30), (25, 31)]):
        y, x = np.mgrid[:height, :width]
        planes = [127 + 120 * np.sin(x / width * draw.uniform(2, 9) + y / height * draw.uniform(2, 9)) for _ in range(3)]
        image = Image.fromarray(np.stack(planes, -1).astype("u1"))
        exif = image.getexif()
        if k == 1:
            exif[274] = 6
        image.save(folder / f"{k}.jpg", quality=95, exif=exif)
    return folder


def imported(quern, folder, *more, side=8, model="dense 3 softmax"):
    done = test_state_dict.run(quern, "model", "import", folder / f"s{side}", "--model", model, "-o", folder / "m", *more)
    return done, test_state_dict.read(folder / "m")[0] if done.returncode == 0 else None


def outputs(quern, folder, photographs):
    done = test_state_dict.run(quern, "predict", folder / "m", "--data", photographs, "--outputs", "-o", folder / "p.csv")
    assert done.returncode == 0 and not done.stderr, done.stderr
    with open(folder / "p.csv") as file:
        rows = list(csv.reader(file))
    found = np.array([row[4:] for row in rows[1:]], float)
    assert [row[2] for row in rows[1:]] == [["crane (n1)", "dog, small", "crane (n3)"][k] for k in found.argmax(1)]
    return found


def expected(folder, photographs, short, side):
    """torchvision's Resize(short), CenterCrop(side), ToTensor, Normalize, with Pillow and in doubles."""
    from PIL import Image, ImageOps
    logits = []
    for path in sorted(photographs.iterdir()):
        image = ImageOps.exif_transpose(Image.open(path))
        width, height = image.size
        size = (short, short * height // width) if width <= height else (short * width // height, short)
        image = image.resize(size, Image.Resampling.BICUBIC)
        left, top = (round((n - side) / 2) for n in image.size)
        pixels = np.array(image.crop((left, top, left + side, top + side)), float).transpose(2, 0, 1) / 255
        values = (pixels - np.reshape(MEAN, (3, 1, 1))) / np.reshape(DEVIATION, (3, 1, 1))
        logits.append(np.load(folder / f"w{side}.npy").astype(float) @ values.ravel() + np.arange(3) / 8)
    powers = np.exp(np.array(logits))
    return powers / powers.sum(1, keepdims=True)


def test_photographs_are_treated_as_timm_does(quern, state, photographs):
    path = state / "config.json"
    path.write_text(json.dumps(config()))
    for side, short, more in ((8, 10, []), (10, 10, ["--input", "3x10x10"])):
        done, recipe = imported(quern, state, "--config", path, *more, side=side)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert recipe["resize"] == f"short {short} crop {side}x{side} bicubic" and recipe["rules"] == "orientation files"
        assert recipe["scale_numbers"] == "0.5,0.25,0.125/0.25,0.5,0.3" and recipe["contract"] == 8
        ours, theirs = outputs(quern, state, photographs), expected(state, photographs, short, side)
        assert np.abs(ours - theirs).max() < 1e-5 and theirs.max(1).min() < 0.9


def test_the_command_wins_over_the_config(quern, state):
    path = state / "config.json"
    path.write_text(json.dumps(config(label_names=..., crop_mode="squash", crop_pct=1.0, interpolation="bilinear")))
    _, recipe = imported(quern, state, "--config", path)
    assert recipe["resize"] == "8x8 bilinear" and recipe["table"] is None
    path.write_text(json.dumps({**config()["pretrained_cfg"], "crop_pct": None}))  # as older versions wrote it
    done, recipe = imported(quern, state, "--config", path, "--scale", "unit", "--resize", "8x8", "--classes", "a,b,c")
    assert recipe["resize"] == "8x8" and recipe["scale"] == "unit" and recipe["contract"] == 7, done.stderr
    assert recipe["table"]["classes"] == ["a", "b", "c"] and "1000" not in done.stderr
    done, recipe = imported(quern, state, "--config", path)
    assert "network with 1000 classes, and this one has 3" in done.stderr
    assert recipe["resize"] == f"short {math.floor(8 / 0.875)} crop 8x8 bicubic"


@pytest.mark.parametrize("change, said", [
    ({"interpolation": "lanczos"}, '"interpolation" is neither'), ({"crop_mode": "border"}, '"crop_mode" is not center'),
    ({"crop_pct": 0}, '"crop_pct" is not a number above 0'), ({"crop_pct": 1e-9}, "more than 4,096 pixels"),
    ({"input_size": ...}, '"input_size" is not in the file'), ({"input_size": [3, 8, 9]}, "sides that differ"),
    ({"input_size": [3, 8]}, '"input_size" is not a list of'), ({"std": [1, 2]}, '"std" is not a list of one number'),
    ({"std": ...}, '"std" is not a list of one number'), ({"mean": ["a", 1, 2]}, '"mean" has an element'),
    ({"std": [0, 1, 1]}, "deviations"), ({"num_classes": -1}, '"num_classes" is not'),
    ({"label_names": ["a", "b"]}, "names of 2 classes, and the network has 3 outputs"),
    ({"label_names": ["a", "", "c"]}, "an empty name"), ({"label_names": ["a", 3, "c"]}, "element 1 is not the name"),
    ({"pretrained_cfg": []}, '"input_size" is not in the file')], ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "")
def test_a_config_that_cannot_be_followed_is_refused(quern, state, change, said):
    path = state / "config.json"
    path.write_text(json.dumps(config(**change)))
    done, _ = imported(quern, state, "--config", path)
    assert done.returncode and said in done.stderr and len(done.stderr.splitlines()) >= 2, done.stderr


def test_names_of_classes_in_json(quern, state):
    path = state / "labels.json"

    def named(content):
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        done, recipe = imported(quern, state, "--input", "192", "--classes", path)
        return done.stderr if recipe is None else recipe["table"]["classes"]
    for content, names in ((["a", "b", "c"], ["a", "b", "c"]), ({"1": "b", "2": "c", "0": "a"}, ["a", "b", "c"]),
                           ({"a": 0, "c": 2, "b": 1}, ["a", "b", "c"]), ({"id2label": {"0": "a", "1": "b", "2": "c"}}, ["a", "b", "c"]),
                           ({"0": ["n1", "crane"], "1": ["n2", "b"], "2": ["n3", "crane"]}, ["crane (n1)", "b", "crane (n3)"]),
                           (["x", "x", "\u00e9, x"], ["x (0)", "x (1)", "\u00e9, x"])):
        assert named(content) == names, content
    for content, said in (({"0": "a", "1": "b", "3": "c"}, "class 3 is named"), ({"0": "a", "a": 0, "1": "b"}, "class 0 has two names"),
                          ({"00": "a", "1": "b", "2": "c"}, '"00" has no name'), ([], "0 names"), ("[1", "invalid JSON"),
                          (["a", "b"], "2 classes, and the last layer has 3 outputs"), ("7", "not a list or an object"),
                          ([["n1", "a"], ["n1", "a"], "b"], 'two classes have the name "a (n1)"')):
        assert said in named(content), content
