"""Networks that give several answers to an item: labels, and classes of pixels (docs/exactness.md 24.70 to 24.77)."""

import json
import shutil
import subprocess

import pytest

import python_package
import ranks
from onnx_reader import Graph
from test_oracle import train as train_both

np = pytest.importorskip("numpy")

MASKS = ["--model", "conv 3 3x3 relu; conv 3 1x1 softmax", "--scale", "unit", "--shape", "1x6x6", "--loss",
         "cross-entropy", "--lr", "0.5", "--batch", "8", "--grain", "4", "--epochs", "2", "--seed", "5"]
DARK = [*MASKS[:2], "--scale", "standard"]  # the photographs below, which have no bright pixels
LABELS = ["--model", "dense 5 tanh; dense 4 sigmoid", "--scale", "standard", "--loss", "binary", "--lr", "0.5",
          "--batch", "8", "--grain", "4", "--epochs", "2", "--seed", "5", "--optimizer", "sgd"]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    """Images, masks and labels, with targets that do not count; the first item has no others."""
    folder = tmp_path_factory.mktemp("several")
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, (24, 6, 6)).astype(np.uint8)
    masks = (x // 86).astype(np.int64)
    masks[rng.random(masks.shape) < 0.2] = 255
    masks[0] = 255
    labels = (x[:, 1, :4] > 128).astype(np.float32)
    labels[rng.random(labels.shape) < 0.2] = 255
    labels[0] = 255
    for name, array in {"x": x, "masks": masks, "labels": labels}.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "turned.npy", np.asfortranarray(masks.astype(">f8")))
    return folder, x, masks, labels


def run(quern, *words, status=0):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def test_both_programs_and_ranks_give_the_same_model(quern, arrays, tmp_path):
    folder = arrays[0]
    for name, words in (("masks", MASKS), ("labels", LABELS)):
        given = ["--data", folder / "x.npy", "--labels", folder / f"{name}.npy", *words, "--valid", "0.25", "--keep", "best"]
        train_both(given, tmp_path / name)
        ranks.run(quern, 2, "train", *given, "--quiet", "-o", tmp_path / "ranks")
        assert (tmp_path / "ranks").read_bytes() == (tmp_path / name).read_bytes()
    about = {name: json.loads(run(quern, "data", "info", folder / "x.npy", "--labels", folder / f"{name}.npy", "--json"))
             for name in ("masks", "turned", "labels")}
    assert about["masks"]["digest"] == about["turned"]["digest"] != about["labels"]["digest"]
    masks, labels = arrays[2:]
    assert about["masks"]["counts"] == [(masks == c).sum() for c in range(3)]
    assert about["labels"]["counts"] == (labels == 1).sum(axis=0).tolist()
    assert [about[name]["ignored"] for name in ("masks", "labels")] == [(masks == 255).sum(), (labels == 255).sum()]


def numbers_of(target, answer):
    """t, p and r of 24.77."""
    return int(target.sum()), int(answer.sum()), int((target & answer).sum())


def test_python_and_the_evaluation(arrays):
    """Answers are those of the outputs, and every number of the evaluation is NumPy's."""
    python_package.folder()
    import quern

    _, x, masks, labels = arrays
    data = quern.Data(x, masks)
    assert (data.several == masks).all() and data.classes == 3 and data.labels is None
    model = quern.train(data, model="conv 3 3x3 relu; conv 3 1x1 softmax", epochs=9, lr=0.5, batch=8, seed=5, valid=0.25)
    answers, outputs = model.predict(x), model.predict(x, outputs=True)
    assert answers.shape == x.shape and answers.dtype == np.uint8 and outputs.shape == (*x.shape, 3)
    assert (outputs.argmax(axis=3) == answers).all() and len(np.unique(answers)) > 1
    with pytest.raises(quern.QuernError, match="flips are for networks with one answer"):
        model.predict(x, flips=True)
    found, counts = model.evaluate(x, masks), masks != 255
    right = int((answers == masks)[counts].sum())
    assert (found["items"], found["targets"], found["correct"]) == (23, counts.sum(), right)
    assert found["accuracy"] == right / counts.sum()
    iou = [r / (t + p - r) for t, p, r in (numbers_of((masks == c)[counts], (answers == c)[counts]) for c in range(3))]
    assert found["by_class"]["iou"] == iou
    assert found["mean_iou"] == pytest.approx(sum(iou) / 3, rel=1e-15)
    assert model.report.valid.items == model.report.valid_evaluation["targets"]
    assert model.report.valid.accuracy == model.report.valid_evaluation["accuracy"]

    model = quern.train(x, labels, epochs=9, seed=5)
    assert model.recipe["task"] == "multilabel" and model.recipe["model"].endswith("; dense 4 sigmoid")
    answers, outputs = model.predict(x), model.predict(x, outputs=True)
    assert ((outputs > 0.5) == answers).all() and answers.shape == labels.shape
    found, counts = model.evaluate(x, labels), labels != 255
    each = [numbers_of((labels == 1)[counts[:, c], c], (answers == 1)[counts[:, c], c]) for c in range(4)]
    t, p, r = map(sum, zip(*each))
    assert (found["micro_precision"], found["micro_recall"], found["micro_f1"]) == (r / p, r / t, 2 * r / (t + p))
    assert found["exact_match"] == ((answers == labels) | ~counts)[1:].all(axis=1).mean()
    assert found["by_label"]["f1"] == [2 * r / (t + p) for t, p, r in each]

    for given, words, said in (
            (masks, {"model": "conv 2 1x1 softmax"}, "tells 2 apart"),
            (masks, {"model": "conv 3 3x3 stride 2 softmax"}, "6x6 pixels, and the last layer gives 3x3"),
            (masks, {"model": "dense 3 softmax"}, "each pixel has a class"),
            (masks, {"mixup": 0.2}, "cutmix.*copies a part of a picture with its mask"),
            (masks, {"augment": "flip", "model": "conv 3 3x3 stride 2 softmax"}, "the masks have 3x3 pixels, and the pictures 6x6"),
            (labels, {"cutmix": 1, "shape": "1x6x6"}, "cutmix"),
            (labels, {"mixup": 0.2}, "mixup"),
            (labels, {"optimizer": "lbfgs"}, "lbfgs"),
            (labels, {"class_weight": "balanced"}, "several labels"),
            (labels, {"model": "dense 4 softmax"}, "several labels"),
            (np.minimum(labels[:, :3] + 1, 9), {}, "neither 0 nor 1"),
            (masks - 1.5, {}, "not a whole number"),
            (x[:, 0, 0] % 3, {"model": "conv 3 1x1 softmax"}, "an item has one label")):
        with pytest.raises(quern.QuernError, match=said):
            quern.train(x, given, epochs=1, **words)
    with pytest.raises(quern.QuernError, match="are several labels for each item; those of the training are classes"):
        quern.train(x, x[:, 0, 0] % 3, epochs=1, valid=(x, labels))


def test_the_command_line(quern, arrays, tmp_path):
    python_package.folder()
    from quern import load

    folder, x, _, labels = arrays
    for name, words in (("masks", MASKS), ("labels", LABELS)):
        run(quern, "train", "--data", folder / "x.npy", "--labels", folder / f"{name}.npy", *words, "--quiet", "-o",
            tmp_path / name, "--valid", "0.5", "--report", tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert ("<h3>Classes of pixels" in page and ">IoU<" in page) if name == "masks" else "<h3>Labels" in page
        run(quern, "model", "export", tmp_path / name, "-o", tmp_path / "m.onnx")
        graph = Graph((tmp_path / "m.onnx").read_bytes())
        pixels = x[:, None] if name == "masks" else x.reshape(len(x), -1)
        found, model = graph.run(pixels), load(tmp_path / name)
        output = found["output"].transpose(0, 2, 3, 1) if name == "masks" else found["output"]
        assert np.abs(output - model.predict(x, outputs=True)).max() < 1e-6
        assert (found["class"] == model.predict(x)).all() and len(graph.outputs["class"]) == found["class"].ndim
    said = run(quern, "evaluate", tmp_path / "masks", "--data", folder / "x.npy", "--labels", folder / "masks.npy")
    assert "mean IoU" in said and "IoU" in said.splitlines()[3]
    lines = run(quern, "predict", tmp_path / "labels", "--data", folder / "x.npy").splitlines()
    assert lines[0] == "item,p0,p1,p2,p3" and len(lines) == len(x) + 1
    assert "-o FOLDER" in run(quern, "predict", tmp_path / "masks", "--data", folder / "x.npy", status=2)
    (tmp_path / "folder").mkdir()
    for name, words, said in (("labels", [], "this is a folder"), ("masks", ["--outputs"], "without the outputs")):
        assert said in run(quern, "predict", tmp_path / name, "--data", folder / "x.npy", *words, "-o",
                           tmp_path / "folder", status=1)
    assert not list((tmp_path / "folder").iterdir())
    assert "labels of the data are several labels" in run(
        quern, "evaluate", tmp_path / "masks", "--data", folder / "x.npy", "--labels", folder / "labels.npy", status=1)
    assert "CSV cannot hold masks" in run(quern, "data", "convert", folder / "x.npy", "--labels", folder / "masks.npy", "-o",
                                      tmp_path / "x.csv", status=1)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Folders of images and of masks of 10x14 pixels: grey, with a palette, and of 1 bit; classes from 0 to 2."""
    image = pytest.importorskip("PIL.Image")
    folder, rng, all_masks = tmp_path_factory.mktemp("photos"), np.random.default_rng(9), {}
    for i, name in enumerate(["b/3.jpg", "1.png", "b/c.d/2.x.png", "a/4.png", "a/5.jpeg", "6.png"]):
        mask = rng.integers(0, 3 if i % 3 < 2 else 2, (10, 14)).astype(np.uint8)
        mask[2, 3:5] = 255 if i % 3 < 2 else 0
        pixels = (mask[:, :, None] * np.array([60, 40, 20]) % 256).astype(np.uint8)
        if i % 3 == 0:
            png = image.fromarray(mask)
        elif i % 3 == 1:
            png = image.frombytes("P", (14, 10), mask.tobytes())
            png.putpalette(rng.integers(0, 256, 768).astype(np.uint8).tobytes())
        else:
            png = image.fromarray(mask.astype(bool))
        stem = name[:name.rindex(".")]
        for path, made in ((folder / "photos" / name, image.fromarray(pixels)), (folder / "masks" / f"{stem}.png", png)):
            path.parent.mkdir(parents=True, exist_ok=True)
            made.save(path)
        all_masks[name] = mask
    return folder, all_masks


def undone(mask, sizes, short, crop):
    """24.16 in NumPy: a mask in the size of its image."""
    sides = sizes if not short else tuple(short if n == min(sizes) else (2 * n * short + min(sizes)) // (2 * min(sizes))
                                          for n in sizes)
    made = sides if short else crop
    places = []
    for n, m, k, count in zip(sizes, made, crop, mask.shape):
        r = (2 * np.arange(n) + 1) * m // (2 * n) - (m - k) // 2
        places.append(np.where((r < 0) | (r >= k), -1, (2 * r + 1) * count // (2 * k)))
    found = mask[np.maximum(places[0], 0)][:, np.maximum(places[1], 0)]
    return np.where((places[0][:, None] < 0) | (places[1] < 0), 255, found)


@pytest.mark.parametrize("resize, short, crop", [("8x20", 0, (8, 20)), ("short 8 crop 6x8", 8, (6, 8))])
def test_masks_in_the_size_of_the_image(quern, photos, tmp_path, resize, short, crop):
    python_package.folder()
    import quern as q
    from PIL import Image

    folder, masks = photos
    shutil.copytree(folder / "photos", tmp_path / "photos")
    names = {"1.png": (10, 14), "b/3.jpg": (10, 14), "tall.png": (31, 7)}
    Image.fromarray(np.random.default_rng(3).integers(0, 256, (31, 7, 3)).astype(np.uint8)).save(tmp_path / "photos" / "tall.png")
    model, out = tmp_path / "m.st", tmp_path / "out"
    run(quern, "train", "--data", folder / "photos", "--masks", folder / "masks", "--resize", resize, *DARK, "--optimizer",
        "adam", "--lr", "0.1", "--epochs", "5", "--quiet", "-o", model)
    run(quern, "predict", model, tmp_path / "photos", "-o", out, "--quiet")
    run(quern, "predict", model, tmp_path / "photos", "-o", tmp_path / "network", "--network-size", "--quiet")
    ranks.run(quern, 2, "predict", model, tmp_path / "photos", "-o", tmp_path / "ranks", "--quiet")
    loaded, data = q.load(model), q.open(tmp_path / "photos", resize=resize, unlabelled=True)
    answers, originals = loaded.predict(data), loaded.predict(data, original_size=True)
    assert len(np.unique(answers)) > 1
    for i, name in enumerate(data.files):
        path = out / f"{name[:name.rindex('.')]}.png"
        seen = np.asarray(Image.open(path))
        if name in names:
            assert seen.shape == names[name] and (seen == undone(answers[i], names[name], short, crop)).all()
        assert (seen == originals[i]).all() and path.read_bytes() == (tmp_path / "ranks" / path.relative_to(out)).read_bytes()
        assert (np.asarray(Image.open(tmp_path / "network" / path.relative_to(out))) == answers[i]).all()
    assert (np.asarray(Image.open(out / "tall.png")) == 255).any() == bool(short)
    with pytest.raises(q.QuernError, match="original_size"):
        loaded.predict(np.zeros((1, *answers.shape[1:], 3), np.uint8).transpose(0, 3, 1, 2), outputs=True, original_size=True)


def test_masks_in_files(quern, photos, tmp_path):
    """Pixels are read and written as Pillow does, and resized as 24.78 says."""
    python_package.folder()
    import quern as q
    from PIL import Image

    folder, masks = photos
    data = q.open(folder / "photos", masks=folder / "masks")
    assert data.several.shape == (6, 10, 14) and data.classes == 3
    assert all((data.several[i] == masks[name]).all() for i, name in enumerate(data.files))
    data = q.open(folder / "photos", masks=folder / "masks", ignore="1", resize="7x33")
    y, x = ((2 * np.arange(m) + 1) * n // (2 * m) for n, m in ((10, 7), (14, 33)))
    for i, name in enumerate(data.files):
        wanted = masks[name][y][:, x]
        assert (data.several[i] == np.where(wanted == 1, 255, wanted)).all()
    data = q.open(folder / "photos", masks=folder / "masks", resize="short 20 crop 9x19")
    y, x = ((2 * (np.arange(k) + (2 * n - k) // 2) + 1) * n // (4 * n) for n, k in ((10, 9), (14, 19)))
    assert all((data.several[i] == masks[name][y][:, x]).all() for i, name in enumerate(data.files))

    model = tmp_path / "m.st"
    given = ["--data", folder / "photos", "--masks", folder / "masks"]
    run(quern, "train", *given, *DARK, "--optimizer", "adam", "--lr", "0.1", "--epochs", "5", "--test", folder / "photos",
        "--test-labels", folder / "masks", "--quiet", "-o", model, "--predictions", tmp_path / "stages")
    assert [path.name for path in (tmp_path / "stages").iterdir()] == ["stage1-test"]
    run(quern, "predict", model, "--data", folder / "photos", "-o", tmp_path / "out", "--quiet")
    answers = q.load(model).predict(str(folder / "photos"))
    assert len(np.unique(answers)) > 1
    for i, name in enumerate(data.files):
        with Image.open((tmp_path / "out" / name).with_suffix(".png")) as png:
            assert png.mode == "P" and (np.asarray(png) == answers[i]).all()
            assert png.getpalette()[:9] == [0, 0, 0, 128, 0, 0, 0, 128, 0]
    assert "mean IoU" in run(quern, "evaluate", model, *given)
    (tmp_path / "file").touch()
    assert "a file has this name" in run(quern, "predict", model, folder / "photos" / "1.png", "-o", tmp_path / "file", status=1)
    run(quern, "predict", model, folder / "photos" / "1.png", "-o", f"{tmp_path / 'one'}/", "--quiet")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["1.png"]

    bad = tmp_path / "bad"
    bad.mkdir()
    for image, said in ((Image.new("RGB", (14, 10)), "colours"), (Image.new("LA", (14, 10)), "opacity"),
                        (Image.new("I;16", (14, 10)), "16 bits"), (Image.new("L", (13, 10)), "10x13 pixels")):
        image.save(bad / "1.png")
        told = run(quern, "data", "info", folder / "photos", "--masks", bad, status=1)
        assert said in told and "bad/1.png" in told, told
    (bad / "1.png").write_bytes((folder / "masks" / "1.png").read_bytes()[:-20])
    said = run(quern, "data", "info", folder / "photos", "--masks", bad, "--skip-broken", status=1)
    assert "broken" in said and "--skip-broken is for images" in said, said
    (bad / "1.png").unlink()
    assert "name of its image" in run(quern, "data", "info", folder / "photos", "--masks", bad, status=1)
    for words, status, told in ((["--ignore", "256"], 2, "--ignore"), (["--unlabelled"], 2, "masks are the labels")):
        assert told in run(quern, "data", "info", *given[1:], *words, status=status)
    assert "have no masks" in run(quern, "data", "info", __file__, "--masks", bad, status=1)


def test_predicted_masks_replace_no_picture(quern, photos, tmp_path):
    """Neither a picture nor a mask that was given, however they are named; a folder beside them is right."""
    folder = tmp_path / "data"
    shutil.copytree(photos[0], folder)
    (folder / "links").mkdir()
    (folder / "links" / "6.png").symlink_to("../photos/6.png")
    model, given = tmp_path / "m.st", ["--data", folder / "photos", "--masks", folder / "masks"]
    train = ["train", *given, *MASKS[:2], "--epochs", "1", "--quiet"]
    run(quern, *train, "-o", model)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    all_data, overwrite = "whose files are all data", "could overwrite one of --data"
    for words, out, told in ((given[:2], "photos", all_data), (given[:2], "photos/new", all_data), (given, "masks", all_data),
                             ([folder / "photos" / "1.png"], "photos", overwrite), ([folder / "photos" / "*.png"], "", overwrite),
                             ([folder / "links" / "6.png"], "links", overwrite), (given[:2], "photos/1.png", all_data)):
        assert told in run(quern, "predict", model, *words, "-o", folder / out, status=2), (words, out)
    for words in (["-o", folder / "masks" / "m.st"], ["-o", model, "--test", folder / "photos", "--test-labels", folder / "masks",
                                                    "--predictions", folder / "photos"]):
        assert all_data in run(quern, *train, *words, status=2), words
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for words, out in ((given[:2], folder), ([folder / "photos" / "b" / "3.jpg"], folder / "photos"), (given[:2], folder)):
        run(quern, "predict", model, *words, "-o", out, "--quiet")
    assert all(path.read_bytes() == content for path, content in before.items())
    # Masks that were drawn, whose folder nothing else names, and one that was corrected.
    for drawn in (folder / "masks" / "1.png", folder / "1.png"):
        kept = {path: path.read_bytes() for path in drawn.parent.rglob("*") if path.is_file()}
        if drawn.parent == folder:
            kept[drawn] = kept[drawn].replace(b"IDAT", b"IDAT\0", 1)
            drawn.write_bytes(kept[drawn])
        said = run(quern, "predict", model, *given[:2], "-o", drawn.parent, status=1)
        assert "replace a file that Quern did not write" in said and "name another folder" in said, said
        assert kept == {path: path.read_bytes() for path in drawn.parent.rglob("*") if path.is_file()}


def test_sets_without_a_target_that_counts(quern, arrays, tmp_path):
    """Nothing could be learned from one, and any epoch would be the best by the other."""
    folder, x, masks, labels = arrays
    for name, array, words, told in (("masks", masks, MASKS, "no pixel in the masks"), ("labels", labels, LABELS, "no label of")):
        np.save(tmp_path / name, np.full_like(array, 255))
        given, empty = ["--labels", folder / f"{name}.npy"], ["--labels", tmp_path / f"{name}.npy"]
        job = ["train", "--data", folder / "x.npy", *words, "--quiet", "-o", tmp_path / "m"]
        for more, which in ((empty, "the training data"), ([*given, "--valid", folder / "x.npy", "--valid-labels", empty[1]], "validation")):
            said = run(quern, *job, *more, status=1)
            assert told in said and which in said, said
