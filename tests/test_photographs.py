"""Photographs as a newcomer has them: image files named one by one (docs/images.md), and maps of what a
network saw in them (docs/exactness.md 24.90)."""

import csv
import gzip
import json

import numpy as np
import pytest
from PIL import Image

from test_pictures import GOOD, digest, folder, packed, photograph, pillow, recipe_of
from test_report import pixels, read, section
from test_state_dict import write


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


@pytest.fixture
def refused(run_quern):
    def ask(*args):
        return run_quern("data", "info", *args, status=1).stderr
    return ask


def test_single_images(tmp_path, run_quern, info, refused):
    """Named image files are items in the order of their names on the command line."""
    kinds = "PNG", "WebP", "GIF", "TIFF", "BMP"
    files = [tmp_path / f"{9 - i}" for i in range(len(kinds))]
    for file, kind in zip(files, kinds):
        file.write_bytes(packed(photograph(len(kind)), kind))
    told = info(*files)
    assert (told["format"], told["items"], told["features"]) == ("images", 5, 3 * 21 * 30)
    assert told["digest"] == digest([pillow(file.read_bytes()) for file in files], None)
    assert info(files[0])["digest"] == digest([pillow(files[0].read_bytes())], None)
    assert info(tmp_path / "?")["digest"] == digest([pillow(f.read_bytes()) for f in files[::-1]], None)
    piped = run_quern("data", "info", "-", "--json", input=files[1].read_bytes(), text=False)
    assert json.loads(piped.stdout)["digest"] == info(files[1])["digest"]
    (tmp_path / "bad.png").write_bytes(GOOD[:-20])
    said = refused(files[0], tmp_path / "bad.png")
    assert "bad.png" in said and "cut off" in said, said
    assert info(files[0], tmp_path / "bad.png", "--skip-broken")["items"] == 1
    (tmp_path / "heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0")
    for names in (["heic"], ["9", "heic"]):
        said = refused(*(tmp_path / name for name in names))
        assert "this is an HEIC image" in said and "heic\n" in said and "convert it" in said, said
    (tmp_path / "g.png.gz").write_bytes(gzip.compress(GOOD))
    assert "compressed image" in refused(tmp_path / "g.png.gz")
    (tmp_path / "text").write_text("1,2\n3,4\n")
    said = refused(files[0], tmp_path / "text")
    assert "has the format csv, and the first one has the format images" in said
    (tmp_path / "small").write_bytes(packed(photograph(1, height=20), "PNG"))
    said = refused(files[0], tmp_path / "small")
    assert "21x30" in said and "20x30" in said and str(tmp_path / "small") in said
    assert info(files[0], tmp_path / "small", "--resize", "8x8")["items"] == 2


def test_predict_photographs(tmp_path, run_quern):
    """File, class and probability of each, and the next classes by the outputs that NumPy sorts."""
    classes = "ant", "bee", "cat"
    files = {f"{classes[i % 3]}/{i}.png": packed(photograph(i, 8, 8)) for i in range(6)}
    data, model = folder(tmp_path / "d", files), tmp_path / "m.st"
    run_quern("train", "--data", data, "--model", "dense 3 softmax", "--epochs", 1, "-o", model,
              "--resize", "4x4")
    names = [data / "cat/2.png", data / "ant/0.png"]
    rows = [line.split(",") for line in
            run_quern("predict", model, *names, "--top", 9, "--outputs").stdout.splitlines()]
    assert rows[0] == ["item", "file", "prediction", "score", "prediction2", "score2", "prediction3",
                       "score3", "p0", "p1", "p2"]
    for name, row in zip(names, rows[1:], strict=True):
        outputs = np.array(row[8:], float)
        order = np.argsort(-outputs, kind="stable")
        assert row[1] == str(name) and row[2:8:2] == [classes[o] for o in order]
        assert row[3:9:2] == [row[8 + o] for o in order]
    # The same as from the folder, and as after --data.
    alone = run_quern("predict", model, *names).stdout
    assert alone == run_quern("predict", model, "--data", *names).stdout
    whole = [line.split(",") for line in run_quern("predict", model, data).stdout.splitlines()]
    assert [row[3:] for row in whole if row[1] in ("cat/2.png", "ant/0.png")] == \
        [row[2:] for row in (line.split(",") for line in alone.splitlines()[:0:-1])]
    said = run_quern("evaluate", model, names[0], status=1).stderr
    assert "no labels" in said and "folder of images for each class" in said
    said = run_quern("predict", names[0], model, status=2).stderr
    assert "looks like data" in said
    said = run_quern("predict", model, *names * 64, *["--data", names[1]] * 2, status=2).stderr
    assert "too many files" in said and "quotes" in said
    run_quern("train", "--data", names[0], "--model", "dense 3 softmax", "-o", model, status=1)


def tensors(path):
    """Of a safetensors file, as float32."""
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:begin])
    return {name: np.frombuffer(raw[begin + of["data_offsets"][0]:begin + of["data_offsets"][1]],
                                np.float32).reshape(of["shape"])
            for name, of in head.items() if name != "__metadata__"}


def overlay(image, level):
    """24.90: an image [row][column] under a map of the same size."""
    colour = [np.clip(382 - abs(4 * level.astype(int) - 255 * k), 0, 255) for k in (3, 2, 1)]
    return (np.stack(colour, -1) + image[..., None] + 1) // 2


@pytest.mark.parametrize("last", ["dense 3 softmax", "dense 1 sigmoid"])
def test_class_activation_maps(tmp_path, run_quern, last):
    """Those of the report are what NumPy makes of the feature maps and the last weights."""
    classes = 3 if "3" in last else 2
    draw = np.random.default_rng(classes)
    labels = draw.integers(0, classes, 60)
    light = np.where(draw.random(60) < 0.5, labels, draw.permuted(labels))  # half of the items mislead
    images = (draw.integers(0, 100, (60, 12, 12)) + 70 * light[:, None, None]).astype(np.uint8)
    with open(tmp_path / "d.csv", "w", newline="") as file:
        csv.writer(file).writerows([label, *image.ravel()] for label, image in zip(labels, images))
    word = ["--loss", "binary"] * (classes == 2)
    job = ["--data", tmp_path / "d.csv", "--shape", "12x12"]
    run_quern("train", *job, "--model", f"conv 5 3x3 stride 3 pad none relu; globalpool; {last}",
              "--epochs", 40, "--lr", 0.1, "--batch", 8, *word, "--run-dir", tmp_path / "run", "-o", tmp_path / "m.st",
              "--report", tmp_path / "a.html")
    for isa in "auto", "scalar":
        run_quern("report", tmp_path / "run", "--model", tmp_path / "m.st", *job, "-o", tmp_path / f"{isa}.html",
                  "--mistakes", 1000, "--isa", isa)
    assert (tmp_path / "auto.html").read_bytes() == (tmp_path / "scalar.html").read_bytes()
    rows = list(csv.reader(run_quern("predict", tmp_path / "m.st", *job, "--outputs").stdout.splitlines()))[1:]
    of = tensors(tmp_path / "m.st")
    windows = np.lib.stride_tricks.sliding_window_view(images / 255, (3, 3), axis=(1, 2))[:, ::3, ::3]
    features = np.einsum("nyxkl,ckl->ncyx", windows, of["layer0.weight"].reshape(5, 3, 3).astype(float))
    features = np.maximum(features + of["layer0.bias"][:, None, None], 0)
    own = [float(row[4 + int(row[1])]) if classes == 3 else [1 - float(row[4]), float(row[4])][int(row[1])]
           for row in rows]
    wrong = sorted((item for item, row in enumerate(rows) if row[1] != row[2]), key=lambda item: (own[item], item))
    figures = list(section(read(tmp_path / "auto.html")[1], "mistakes").iter("figure"))
    assert len(figures) == len(wrong) > 5 and len({rows[item][2] for item in wrong}) > 1
    for item, figure in zip(wrong, figures):
        first, second = figure.findall("img")
        assert f"item {item}" in "".join(figure.itertext())
        assert pixels(first.get("src")) == (12, 12, 1, images[item].tobytes())
        weights = of["layer2.weight"].astype(float)
        weights = weights[int(rows[item][2])] if classes == 3 else weights[0] * [-1, 1][int(rows[item][2])]
        level = np.tensordot(weights.ravel(), features[item], 1)
        level = ((level - level.min()) / (level.max() - level.min()) * 255 + 0.5).astype(np.uint8)
        # 2.9 enlarges as Pillow's linear interpolation of four neighbours: here to three times the size.
        large = np.array(Image.fromarray(level).resize((12, 12), Image.Resampling.BILINEAR))
        height, width, channels, got = pixels(second.get("src"))
        assert (height, width, channels) == (12, 12, 3)
        got = np.frombuffer(got, np.uint8).reshape(12, 12, 3)
        worst = abs(got.astype(int) - overlay(images[item], large)).max()
        assert worst <= 4, item  # a step of the map is four of a colour
    assert "4 x 4 pixels" in "".join(section(read(tmp_path / "a.html")[1], "mistakes").itertext())


def test_no_class_activation_maps(tmp_path, run_quern):
    """The page says why."""
    folder(tmp_path / "d", {f"{k}/{i}.png": packed(photograph(9 * k + i, 8, 8)) for k in (0, 1) for i in range(9)})
    run_quern("train", "--data", tmp_path / "d", "--model", "conv 4 3x3 relu; dense 2 softmax", "--epochs", 1,
              "--lr", "0.0001", "-o", tmp_path / "m.st", "--report", tmp_path / "r.html")
    part = section(read(tmp_path / "r.html")[1], "mistakes")
    assert "no class activation maps: the network does not end with globalpool and one dense layer" in \
        "".join(part.itertext())
    assert len(list(part.iter("img"))) == len(list(part.iter("figure"))) > 0


def test_a_start_from_a_model_of_other_images(tmp_path, run_quern):
    """A refusal names the size of that model's images, and the way to other classes."""
    files = {f"{k}/{i}.png": packed(photograph(9 * k + i, 8, 8)) for k in (0, 1, 2) for i in range(4)}
    three = folder(tmp_path / "three", files)
    two = folder(tmp_path / "two", {name: content for name, content in files.items() if name[0] != "2"})
    job = ["--epochs", 1, "--init-from", tmp_path / "m.st", "-o", tmp_path / "n.st", "--model"]
    model = "conv 2 3x3 relu; globalpool; dense {} softmax"
    run_quern("train", "--data", three, "--resize", "4x4 bilinear", "--model", model.format(3), "--epochs", 1,
              "-o", tmp_path / "m.st")
    said = run_quern("train", "--data", three, "--resize", "8x8", *job, model.format(3), status=1).stderr
    assert '--resize "4x4 bilinear"' in said, said
    said = run_quern("train", "--data", two, "--resize", "4x4 bilinear", *job, model.format(2), status=1).stderr
    assert "for other classes set --new-last" in said, said
    run_quern("train", "--data", two, "--resize", "4x4 bilinear", "--new-last", *job, model.format(2))
    copy = (tmp_path / "n.st").read_bytes()
    run_quern("train", "--data", two, *job[:-1], "--new-last")  # layers and size of that model
    assert (tmp_path / "n.st").read_bytes() == copy


def test_dark_photographs_are_images(tmp_path, run_quern):
    """Whatever their values: a scale for each pixel would destroy what a convolution looks for."""
    dark = {f"{k}/{i}.png": photograph(9 * k + i, 6, 6)[:, :, 0] // 3 for k in (0, 1) for i in range(4)}
    data = folder(tmp_path / "dark", {name: packed(array) for name, array in dark.items()})
    np.savez(tmp_path / "a.npz", x=np.stack([dark[name] for name in sorted(dark)]), y=[0] * 4 + [1] * 4)
    model = ["--model", "conv 2 3x3 relu; globalpool; dense 2 softmax", "--epochs", 1, "--quiet"]
    for files, scale in ((data, "unit"), (tmp_path / "a.npz", "standard")):
        run_quern("train", "--data", files, *model, "-o", tmp_path / f"{scale}.st")
        assert recipe_of(tmp_path / f"{scale}.st")["scale"] == scale
    run_quern("train", "--data", tmp_path / "a.npz", "--scale", "unit", *model, "-o", tmp_path / "same.st")
    assert (tmp_path / "same.st").read_bytes() == (tmp_path / "unit.st").read_bytes()


def test_grey_photographs_for_a_model_of_colours(tmp_path, run_quern):
    """They get three equal channels, as for a prediction: X-rays for a network of torchvision."""
    pixels = {f"{k}/{i}.png": photograph(9 * k + i, 6, 6) for k in (0, 1) for i in range(4)}
    grey = folder(tmp_path / "grey", {name: packed(array[:, :, 0]) for name, array in pixels.items()})
    equal = folder(tmp_path / "equal", {name: packed(array[:, :, [0, 0, 0]]) for name, array in pixels.items()})
    colours = folder(tmp_path / "colours", {name: packed(array) for name, array in pixels.items()})
    run_quern("train", "--data", colours, "--model", "conv 2 3x3 relu; globalpool; dense 2 softmax", "--epochs", 1,
              "-o", tmp_path / "m")
    for data in grey, equal:
        run_quern("train", "--data", data, "--init-from", tmp_path / "m", "--epochs", 1, "-o", tmp_path / f"{data.name}.st")
    assert (tmp_path / "grey.st").read_bytes() == (tmp_path / "equal.st").read_bytes()
    run_quern("replay", tmp_path / "grey.st", "--data", grey, "--init-from", tmp_path / "m")
    run_quern("search", "--data", grey, "--init-from", tmp_path / "m", "--lr-range", "1e-3,1,10")


def test_a_start_with_another_scale_is_told(tmp_path, run_quern):
    """What layers have learned of inputs about 0 is worth little for inputs from 0 to 1."""
    data = folder(tmp_path / "d", {f"{k}/{i}.png": packed(photograph(9 * k + i, 6, 6)) for k in (0, 1) for i in range(4)})
    job = ["train", "--data", data, "--epochs", 1, "-o"]
    run_quern(*job, tmp_path / "m", "--scale", "channel", "--model", "conv 2 3x3 relu; globalpool; dense 2 softmax")
    start = [*job, tmp_path / "n", "--init-from", tmp_path / "m"]
    said = run_quern(*start).stderr
    assert "was trained with --scale channel, and this training has unit" in said and "--init-scale keep" in said, said
    for more in (["--init-scale", "keep"], ["--scale", "channel"], ["--scale", "unit"]):
        assert "was trained with" not in run_quern(*start, *more).stderr


def test_an_imported_network_keeps_its_scale_and_says_that_classes_differ(tmp_path, run_quern):
    """As --scale with its numbers does. Fewer classes than outputs are refused."""
    draw = np.random.default_rng(5).normal
    write(tmp_path / "s", {"a.weight": draw(size=(2, 3, 3, 3)), "a.bias": draw(size=2),
                           "b.weight": draw(size=(9, 2)), "b.bias": draw(size=9)})
    run_quern("model", "import", tmp_path / "s", "--model", "conv 2 3x3 relu; globalpool; dense 9 softmax",
              "--input", "3x8x8", "--scale", "imagenet", "-o", tmp_path / "m")
    data = folder(tmp_path / "d", {f"{k}/{i}.png": packed(photograph(9 * k + i, 8, 8)) for k in (0, 1)
                                   for i in range(4)})
    job = ["train", "--data", data, "--epochs", 1, "--init-from", tmp_path / "m"]
    said = run_quern(*job, "-o", tmp_path / "n", status=1).stderr
    assert "has 9 outputs, and the data 2 classes" in said and "add --new-last" in said, said
    assert not (tmp_path / "n").exists()
    for out, more in (("n", []), ("o", ["--scale", "imagenet"]), ("p", ["--scale", "unit"])):
        run_quern(*job, "--new-last", *more, "-o", tmp_path / out)
    assert (tmp_path / "n").read_bytes() == (tmp_path / "o").read_bytes() != (tmp_path / "p").read_bytes()
