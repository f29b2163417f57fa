"""Folders and archives of images: what is read is what Pillow reads, byte by byte, and each odd case
has its answer (docs/images.md)."""

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import data_vectors

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import images as reference  # noqa: E402  (needs the line above)


@pytest.fixture
def info(run_quern):
    def ask(*args):
        return json.loads(run_quern("data", "info", *args, "--json").stdout)
    return ask


@pytest.fixture
def refused(run_quern):
    """What is said of data that cannot be read."""
    def ask(*args):
        return run_quern("data", "info", *args, status=1).stderr
    return ask


def digest(images, labels):
    """Of docs/exactness.md 2.2 for 2.1.10; images is [item][row][column] or [...][channel]."""
    images = np.asarray(images)
    planes = images if images.ndim == 3 else np.moveaxis(images, 3, 1)
    values = np.ascontiguousarray(planes.reshape(len(planes), -1), np.uint8)
    known = None if labels is None else np.asarray(labels, "<i4").tobytes()
    return data_vectors.digest_of(1, *values.shape, values.tobytes(), known)


def test_names_of_classes_obey_no_terminal(run_quern, tmp_path):
    for name in ("a\x1b[31m", "b\nc"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "0.png").write_bytes(packed(photograph(1)))
    told = run_quern("data", "info", tmp_path / "data").stdout
    assert "1  a?[31m\n" in told and "1  b?c\n" in told and "\x1b" not in told


def photograph(seed, height=21, width=30, channels=3):
    """Something smooth with an edge and some noise."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    image = np.stack([128 + 100 * np.sin(x / draw.uniform(3, 9) + k) * np.cos(y / draw.uniform(3, 9))
                      for k in range(channels)], axis=-1)
    image[y > x] += 40
    image = np.clip(image + draw.normal(size=image.shape) * 6, 0, 255).astype(np.uint8)
    return image if channels == 3 else image[..., 0]


def packed(image, kind="PNG", **options):
    made = io.BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(made, kind, **options)
    return made.getvalue()


def png(width, height, depth, colour, data, *chunks, interlace=0):
    """A PNG file of its parts; data: the filtered rows."""
    def chunk(name, content):
        return (struct.pack(">I", len(content)) + name + content
                + struct.pack(">I", zlib.crc32(name + content)))
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(*c) for c in chunks)
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def folder(path, files):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def pillow(content, mode="RGB"):
    return np.asarray(Image.open(io.BytesIO(content)).convert(mode))


def classes_of(names):
    known = sorted({n.split("/")[0] for n in names})
    return [known.index(n.split("/")[0]) for n in sorted(names)]


# ---------------------------------------------------------------- pixels

JPEG = {"444": dict(quality=90, subsampling=0), "422": dict(quality=70, subsampling=1),
        "420": dict(quality=40, subsampling=2), "progressive": dict(progressive=True),
        "restart": dict(restart_marker_rows=1), "optimised": dict(quality=95, optimize=True)}


def test_several_folders_and_archives(tmp_path, run_quern, info, refused):
    """The items of one after the other; a folder around all others is looked for in each."""
    parts = [{"cat/b.png": photograph(1), "dog/a.png": photograph(2)}, {"dog/c.png": photograph(3, channels=1)},
             {"ant/z.png": photograph(4), "cat/a.png": photograph(5)}]
    classes, planes = [], []
    for k, part in enumerate(parts):
        folder(tmp_path / f"p{k}", {f"inside/{name}" if k == 2 else name: packed(part[name]) for name in part})
        with tarfile.open(tmp_path / f"p{k}.tar", "w") as made:
            made.add(tmp_path / f"p{k}", "all" if k else "")
        classes += [["ant", "cat", "dog"].index(name[:3]) for name in sorted(part)]
        planes += [np.dstack([part[name]] * (1 if part[name].ndim == 3 else 3)) for name in sorted(part)]
    want = digest(planes, classes)
    assert info(*(tmp_path / f"p{k}" for k in range(3)))["digest"] == want
    assert info(tmp_path / "p0", tmp_path / "p1.tar", tmp_path / "p2.tar")["digest"] == want
    assert "an image among folders" in refused(tmp_path / "p0", tmp_path / "p1/dog/c.png")
    assert "lies beside the folders of the classes" in refused(tmp_path / "p0", tmp_path / "p1/dog")
    assert "have no masks" in refused(tmp_path / "p0", tmp_path / "p1", "--masks", tmp_path)


def test_digits_as_an_archive(tmp_path, run_quern, info):
    """What tarfile and Pillow read, in the order of the names, is what Quern reads: the digits."""
    archive, images, labels = tmp_path / "d.tar", tmp_path / "d.idx", tmp_path / "l.idx"
    run_quern("data", "synth", "digits", "--items", 12, "-o", archive)
    run_quern("data", "synth", "digits", "--items", 12, "-o", images, "--labels", labels)
    drawn = np.frombuffer(images.read_bytes()[16:], np.uint8).reshape(12, 28, 28)
    classes = labels.read_bytes()[8:]
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        read = [np.asarray(Image.open(packed.extractfile(name))) for name in names]
    assert names == [f"{label}/{i:02}.png" for i, label in enumerate(classes)]
    assert np.array_equal(read, drawn)
    order = sorted(range(12), key=names.__getitem__)
    assert info(archive)["digest"] == digest(drawn[order], [classes[i] for i in order])


@pytest.mark.parametrize("kind", JPEG)
def test_jpeg(tmp_path, info, kind):
    files = {f"{'ab'[i % 2]}/{i}.jpg": packed(photograph(i), "JPEG", **JPEG[kind]) for i in range(8)}
    told = info(folder(tmp_path, files))
    assert (told["format"], told["items"], told["features"]) == ("images", 8, 3 * 21 * 30)
    assert (told["rows"], told["columns"], told["channels"]) == (21, 30, 3)
    assert told["class_names"] == ["a", "b"] and told["counts"] == [4, 4]
    assert told["digest"] == digest([pillow(files[n]) for n in sorted(files)], classes_of(files))


def test_grey_jpeg(tmp_path, info):
    files = {f"a/{i}.jpeg": packed(photograph(i, channels=1), "JPEG") for i in range(3)}
    told = info(folder(tmp_path, files))
    assert (told["features"], told["channels"]) == (21 * 30, 1)
    assert told["digest"] == digest([pillow(files[n], "L") for n in sorted(files)], [0] * 3)


def test_grey_among_colours(tmp_path, info):
    grey, colour = photograph(1, channels=1), photograph(2)
    files = {"a/1": packed(grey), "a/2": packed(colour), "b/3": packed(grey, "JPEG")}
    told = info(folder(tmp_path, files))
    assert told["channels"] == 3
    assert told["digest"] == digest([pillow(files[n]) for n in sorted(files)], [0, 0, 1])


def sixteen(samples):
    """Rows of 16 bit samples, without a filter."""
    return b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)


def adam7(image):
    """The seven passes of an interlaced image of bytes, without filters."""
    made = b""
    for y, x, dy, dx in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2),
                         (0, 1, 2, 2), (1, 0, 2, 1)]:
        for row in image[y::dy, x::dx]:
            made += b"\0" + row.tobytes() if row.size else b""
    return made


def test_png_colours(tmp_path, info):
    """Every kind of PNG that has colours, beside what it means."""
    rgb = photograph(3)
    alpha = np.dstack([rgb, photograph(4, channels=1)])
    palette = Image.fromarray(rgb).quantize(17)
    seen = packed(palette, transparency=2)
    wide = np.random.default_rng(5).integers(0, 65536, (21, 90))
    cases = {"rgb": (packed(rgb), rgb), "rgba": (packed(alpha), rgb),
             "palette": (packed(palette), np.asarray(palette.convert("RGB"))),
             "seen": (seen, np.asarray(palette.convert("RGB"))),
             "wide": (png(30, 21, 16, 2, sixteen(wide)), (wide >> 8).reshape(21, 30, 3)),
             "gamma": (png(30, 21, 8, 2, b"".join(b"\0" + r.tobytes() for r in rgb),
                           (b"gAMA", struct.pack(">I", 100000))), rgb),
             "laced": (png(30, 21, 8, 2, adam7(rgb), interlace=1), rgb)}
    told = info(folder(tmp_path, {f"a/{k}": v[0] for k, v in cases.items()}))
    assert told["digest"] == digest([cases[k][1] for k in sorted(cases)], [0] * len(cases))


def test_png_greys(tmp_path, info):
    grey = photograph(3, channels=1)
    wide = np.random.default_rng(5).integers(0, 65536, (21, 30))
    bits = Image.fromarray(grey).convert("1")
    quarter = np.random.default_rng(6).integers(0, 4, (21, 32))
    rows = np.pad(quarter[:, :30], ((0, 0), (0, 2))).reshape(21, 8, 4) @ [64, 16, 4, 1]
    two = b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in rows)
    cases = {"grey": (packed(grey), grey),
             "alpha": (packed(np.dstack([grey, 255 - grey])), grey),
             "wide": (png(30, 21, 16, 0, sixteen(wide)), wide >> 8),
             "one": (packed(bits), np.asarray(bits.convert("L"))),
             "two": (png(30, 21, 2, 0, two), quarter[:, :30] * 85),
             "clear": (png(30, 21, 2, 0, two, (b"tRNS", b"\0\2")), quarter[:, :30] * 85)}
    told = info(folder(tmp_path, {f"a/{k}": v[0] for k, v in cases.items()}))
    assert told["channels"] == 1
    assert told["digest"] == digest([cases[k][1] for k in sorted(cases)], [0] * len(cases))


def test_grey_for_a_model_of_colours(tmp_path, run_quern):
    """Three equal channels in a prediction and in a test set; one elsewhere."""
    colours = {f"{k}/{i}": packed(photograph(10 * i + len(k))) for k in ("x", "yy") for i in range(5)}
    grey = {n: packed(photograph(7, channels=1)) for n in colours}
    equal = {n: packed(np.repeat(photograph(7, channels=1)[..., None], 3, axis=2)) for n in colours}
    train, one, three = (folder(tmp_path / name, files) for name, files in
                         (("train", colours), ("one", grey), ("three", equal)))
    told = []
    for test in one, three:
        run_quern("train", "--data", train, "--test", test, "--model", "dense 2 softmax", "--epochs",
                  "1", "--batch", "5", "-o", tmp_path / "m")
        told.append(run_quern("predict", tmp_path / "m", "--data", test).stdout)
    assert told[0] == told[1] and told[0].count("\n") == 11
    run_quern("train", "--data", one, "--model", "dense 2 softmax", "--epochs", "1", "--batch", "5",
              "-o", tmp_path / "m")
    told = run_quern("predict", tmp_path / "m", "--data", train, status=None).stderr
    assert "trained on grey images" in told and "--resize" not in told


def test_images_that_do_not_fit(tmp_path, run_quern):
    """What is wrong, where, and what to do: each place and remedy can be typed in."""
    kinds = {"rgb": (12, 12, 3), "grey": (12, 12, 1), "big": (16, 24, 3), "large": (16, 24, 1)}
    sets = {name: folder(tmp_path / name, {f"{c}/{i}": packed(photograph(i, *shape[:2], channels=shape[2]))
                                           for c in "ab" for i in range(2)})
            for name, shape in kinds.items()}
    model = {}
    for name, layers in (("rgb", "conv 4 3x3"), ("grey", "conv 4 3x3"), ("flat", "dense 4")):
        model[name] = tmp_path / f"{name}.m"
        run_quern("train", "--data", sets["grey" if name == "grey" else "rgb"], "--epochs", "1", "--batch", "4",
                  "--model", f"{layers}; dense 2 softmax", "-o", model[name])
    train = ["train", "--data", sets["rgb"], "--model", "dense 2 softmax", "--epochs", "1", "-o", tmp_path / "x"]
    grey = "make grey images of them"
    for words, what, where, remedy in (
            (["predict", model["grey"], "--data", sets["rgb"]], "3x12x12, the model takes 1x12x12", sets["rgb"], grey),
            (["predict", model["grey"], "--data", sets["big"]], "3x16x24, the model takes 1x12x12", sets["big"], grey),
            (["predict", model["grey"], "--data", sets["large"]], "1x16x24, the model takes", sets["large"],
             "--resize 12x12"),
            (["predict", model["rgb"], "--data", sets["big"]], "3x16x24, the model takes", sets["big"],
             "--resize 12x12"),
            (["predict", model["flat"], "--data", sets["big"]], "1152 values, and the model takes 432", sets["big"],
             "in training: --resize"),
            ([*train, "--test", sets["big"]], "the test set has", "", "--resize"),
            ([*train, "--resize", "12"], "how to resize", "at --resize", "32x32"),
            ([*train, "--augment", "pad 0"], 'number of pixels "0"', "augmentation, column 5", "pad 4")):
        told = run_quern(*words, status=None).stderr
        assert what in told and str(where) in told and remedy in told, told


# ---------------------------------------------------------------- folders and archives

def some_files():
    files = {f"{kind}/{i:02}.png": packed(photograph(7 * i + len(kind), 5, 6))
             for kind in ("cat", "dog", "éléphant") for i in range(6)}
    return {**files, "dog/very/" + "deep/" * 20 + "x" * 120 + ".png": packed(photograph(99, 5, 6))}


def tar(path, files, mode="w", form=tarfile.PAX_FORMAT, top=""):
    with tarfile.open(path, mode, format=form) as archive:
        for name in reversed(sorted(files)):
            entry = tarfile.TarInfo(top + name)
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    return path


def zip_of(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.mkdir("cat")
        for name in reversed(sorted(files)):
            archive.writestr(name, files[name])
    return path


def test_archives(tmp_path, info):
    """However it is packed, it is the same data."""
    files = some_files()
    want = digest([pillow(files[n]) for n in sorted(files)], classes_of(files))
    packed_as = [folder(tmp_path / "all", files), folder(tmp_path / "above" / "one", files).parent,
                 tar(tmp_path / "pax.tar", files), tar(tmp_path / "noname", files),
                 tar(tmp_path / "gnu.tar", files, form=tarfile.GNU_FORMAT),
                 tar(tmp_path / "below.tar", files, top="./photographs/"),
                 tar(tmp_path / "packed.tar.gz", files, "w:gz"),
                 zip_of(tmp_path / "deflated.zip", files),
                 zip_of(tmp_path / "stored.zip", files, zipfile.ZIP_STORED)]
    for path in packed_as:
        told = info(path)
        assert told["digest"] == want, path
        assert told["class_names"] == ["cat", "dog", "éléphant"]
        assert told["format"] == ("images.gz" if path.name.endswith("gz") else "images")


def test_ustar(tmp_path, info):
    """A long name in two parts, which the format of 1988 has."""
    files = {f"dog/{'deep/' * 20}{'x' * 80}.png": packed(photograph(1)), "cat/1": packed(photograph(2))}
    told = info(tar(tmp_path / "a.tar", files, form=tarfile.USTAR_FORMAT))
    assert told["digest"] == digest([pillow(files[n]) for n in sorted(files)], [0, 1])


def test_hidden_files(tmp_path, info):
    files = {"a/1.png": packed(photograph(1)), "b/1.png": packed(photograph(2))}
    want = info(folder(tmp_path / "plain", files))["digest"]
    more = {**files, ".DS_Store": b"x", "a/._1.png": b"x", ".git/config": b"x", "__MACOSX/a/._1.png": b"x"}
    (tmp_path / "more" / "empty").mkdir(parents=True)
    assert info(folder(tmp_path / "more", more))["digest"] == want
    assert info(tar(tmp_path / "more.tar", more))["digest"] == want
    assert info(zip_of(tmp_path / "more.zip", more))["digest"] == want


def test_the_same_model(tmp_path, run_quern):
    """From a folder, from an archive, and from an IDX file of the same pixels and class numbers."""
    images = [photograph(i, 9, 9, 1) for i in range(60)]
    files = {f"{i % 3}/{i:02}.png": packed(image) for i, image in enumerate(images)}
    order = sorted(range(60), key=lambda i: (i % 3, i))
    pixels = np.stack([images[i] for i in order])
    (tmp_path / "x.idx").write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", *pixels.shape)
                                     + pixels.tobytes())
    (tmp_path / "y.idx").write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", 60)
                                     + bytes(i % 3 for i in order))
    sources = {"folder": [folder(tmp_path / "all", files)], "tar": [tar(tmp_path / "all.tar", files)],
               "idx": [tmp_path / "x.idx", "--labels", tmp_path / "y.idx"]}
    models = {}
    for name, source in sources.items():
        run_quern("train", "--data", *source, "--model", "dense 8 relu; dense 3 softmax", "--epochs", "2", "--batch", "10", "-o",
                  tmp_path / name)
        models[name] = (tmp_path / name).read_bytes()
    assert models["folder"] == models["tar"] == models["idx"]


def test_predictions(tmp_path, run_quern):
    """A folder without classes is predicted; so is one that has only some of them."""
    files = {f"{kind}/{i}.png": packed(np.full((4, 4), 60 * k + 20 + i, np.uint8))
             for k, kind in enumerate(("dark", "grey", "light")) for i in range(9)}
    model = tmp_path / "model"
    run_quern("train", "--data", folder(tmp_path / "all", files), "--model", "dense 8 relu; dense 3 softmax", "--epochs", "300",
              "--batch", "9", "--lr", "0.2", "-o", model)
    flat = folder(tmp_path / "flat", {n.replace("/", "-"): c for n, c in files.items()})
    lines = run_quern("predict", model, "--data", flat).stdout.splitlines()
    assert lines[0] == "item,file,prediction,score"
    assert [line.split(",")[1] for line in lines[1:]] == sorted(n.replace("/", "-") for n in files)
    assert [line.split(",")[2] for line in lines[1:]] == ["dark"] * 9 + ["grey"] * 9 + ["light"] * 9
    light = folder(tmp_path / "some", {n: c for n, c in files.items() if n[0] == "l"})
    done = run_quern("predict", model, "--data", light)
    assert "accuracy 100.00 %" in done.stderr
    assert done.stdout.splitlines()[1].startswith("0,light/0.png,light,light,")
    large = folder(tmp_path / "large", {"1.png": packed(np.full((9, 5), 150, np.uint8))})
    assert "--resize" in run_quern("predict", model, "--data", large, status=None).stderr
    assert ",1.png,light," in run_quern("predict", model, "--data", large, "--resize", "4x4").stdout
    assert "no labels" in run_quern("train", "--data", flat, "--model",
                                     "dense 3 softmax", "-o", tmp_path / "m", status=1).stderr


# ---------------------------------------------------------------- sizes

def test_resize(tmp_path, info):
    """Against the second implementation, for every kind of axis."""
    sizes = [(21, 30), (5, 7), (1, 1), (8, 3), (64, 64), (33, 10), (9, 8)]
    images = [photograph(i, *size) for i, size in enumerate(sizes)]
    path = folder(tmp_path / "all", {f"a/{i}": packed(image) for i, image in enumerate(images)})
    for how in ("8x8", "13x4", "1x1", "40x50", "short 9 crop 8", "short 4 crop 3x4", "short 50 crop 1x49"):
        told = info(path, "--resize", how)
        assert told["digest"] == digest([reference.resize(i, how) for i in images], [0] * 7), how
    flat = folder(tmp_path / "flat", {"a/1": packed(np.full((37, 41), 201, np.uint8))})
    told = info(flat, "--resize", "8x9")
    assert (told["min"], told["max"], told["rows"], told["columns"]) == (201, 201, 8, 9)


FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def test_resize_by_a_filter(tmp_path, info):
    """Byte for byte what Pillow does, the second implementation too; the crop is torchvision's."""
    sizes = [(21, 30), (1, 1), (8, 3), (1, 500), (500, 1), (64, 64), (33, 10), (9, 8), (40, 101)]
    images = [photograph(i, *size) for i, size in enumerate(sizes)]
    for i, image in enumerate(images):  # the edges make bicubic sums leave 0 to 255
        image[::2, ::3] = 255 * (i % 2)
    path = folder(tmp_path / "all", {f"a/{i}": packed(image) for i, image in enumerate(images)})
    for size in ("8x8", "13x4", "1x1", "40x50", "3x30"):
        for name, kind in FILTERS.items():
            rows, columns = (int(side) for side in size.split("x"))
            theirs = [np.asarray(Image.fromarray(i).resize((columns, rows), kind)) for i in images]
            assert info(path, "--resize", f"{size} {name}")["digest"] == digest(theirs, [0] * 9), size
            for mine, other in zip(images, theirs):
                assert np.array_equal(reference.resize(mine, f"{size} {name}"), other)
    grey = folder(tmp_path / "grey", {"a/1": packed(images[0][:, :, 0]), "a/2": packed(images[8][:, :, 1])})
    mixed = [np.asarray(Image.fromarray(i).resize((7, 5), FILTERS["bicubic"]))
             for i in (images[0][:, :, 0], images[8][:, :, 1])]
    assert info(grey, "--resize", "5x7 bicubic")["digest"] == digest(mixed, [0] * 2)
    some = [images[i] for i in (0, 2, 5, 6, 7, 8)]
    path = folder(tmp_path / "some", {f"a/{i}": packed(image) for i, image in enumerate(some)})
    for s, crop in ((9, 8), (10, 9), (4, 3), (51, 50)):
        theirs = []
        for i in some:
            made = [side * s // min(i.shape[:2]) for side in i.shape[:2]]
            at = [round((side - crop) / 2) for side in made]
            whole = np.asarray(Image.fromarray(i).resize(made[::-1], FILTERS["bilinear"]))
            theirs.append(whole[at[0]:at[0] + crop, at[1]:at[1] + crop])
        how = f"short {s} crop {crop} bilinear"
        assert info(path, "--resize", how)["digest"] == digest(theirs, [0] * 6), how
        assert all(np.array_equal(reference.resize(i, how), t) for i, t in zip(some, theirs))


def test_a_filter_is_remembered(tmp_path, run_quern):
    """By the recipe, which is then of contract 8."""
    files = {f"{'ab'[i % 2]}/{i:02}": packed(photograph(i, 9, 11 + i)) for i in range(8)}
    path, model = folder(tmp_path / "all", files), tmp_path / "m"
    how, job = "short 6 crop 5x4 bicubic", ["--model", "dense 2 softmax", "--epochs", "1"]
    run_quern("train", "--data", path, "--resize", how, *job, "-o", model)
    recipe = recipe_of(model)
    assert (recipe["contract"], recipe["resize"]) == (8, how)
    assert run_quern("predict", model, "--data", path).stdout == \
        run_quern("predict", model, "--data", path, "--resize", how).stdout
    told = run_quern("predict", model, "--data", path, "--resize", "short 6 crop 5x4", status=2).stderr
    assert f'"{how}"' in told
    assert "identical" in run_quern("replay", model, "--data", path).stdout
    wrong = tmp_path / "wrong"
    wrong.write_bytes(model.read_bytes().replace(b'\\"contract\\":8', b'\\"contract\\":6'))
    assert wrong.read_bytes() != model.read_bytes()
    assert run_quern("predict", wrong, "--data", path, status=None).returncode


def recipe_of(model):
    content = model.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8:8 + size])["__metadata__"]["recipe"])


def test_resize_is_remembered(tmp_path, run_quern):
    """By the model: whatever images come to it are resized as those of its training."""
    files = {f"{'ab'[i % 2]}/{i:02}": packed(photograph(i, 9, 11 + i)) for i in range(12)}
    path, model, plain = folder(tmp_path / "all", files), tmp_path / "m", tmp_path / "plain"
    job = ["--model", "dense 2 softmax", "--epochs", "2", "--batch", "4"]
    run_quern("train", "--data", path, "--test", path, "--resize", "short 6 crop 5", *job, "-o", model)
    recipe = recipe_of(model)
    assert (recipe["contract"], recipe["resize"], list(recipe)[-1]) == (6, "short 6 crop 5x5", "resize")
    told = run_quern("predict", model, "--data", path).stdout
    assert told == run_quern("predict", model, "--data", path, "--resize", "short 6 crop 5x5").stdout
    other = run_quern("predict", model, "--data", path, "--resize", "5x5", status=2).stderr
    assert '"short 6 crop 5x5"' in other and "--resize" in other
    assert "identical" in run_quern("replay", model, "--data", path).stdout
    for size in b"4x5", b"05x":
        wrong = tmp_path / "wrong"
        wrong.write_bytes(model.read_bytes().replace(b"crop 5x5", b"crop " + size))
        told = run_quern("predict", wrong, "--data", path, status=None)
        assert told.returncode and not told.stdout

    # The same pixels without the images: no key, another model file, and any size may be asked for.
    order = sorted(files)
    pixels = np.stack([np.moveaxis(reference.resize(pillow(files[n]), "short 6 crop 5"), 2, 0) for n in order])
    np.savez(tmp_path / "p.npz", x=pixels.reshape(12, -1), y=np.array([n[0] for n in order]))
    run_quern("train", "--data", tmp_path / "p.npz", *job, "-o", plain)
    known = recipe_of(plain)
    assert "resize" not in known and known["contract"] == 2
    assert {**recipe, "contract": 2} == {**recipe, **known}
    assert "identical" in run_quern("replay", model, "--data", tmp_path / "p.npz").stdout
    assert "identical" in run_quern("replay", plain, "--data", path, "--resize", "short 6 crop 5").stdout
    run_quern("predict", plain, "--data", path, "--resize", "5x5")
    told = run_quern("predict", plain, "--data", path, status=1).stderr
    assert "differ in size" in told and "--resize" in told


def test_resize_is_near_others(tmp_path):
    """The average over an area of whole pixels is Pillow's box filter but for its two roundings; so
    is interpolation its bilinear filter."""
    image = photograph(3, 48, 60)
    for how, size, kind in (("16x12", (12, 16), Image.Resampling.BOX),
                            ("95x122", (122, 95), Image.Resampling.BILINEAR)):
        other = np.asarray(Image.fromarray(image).resize(size, kind)).astype(int)
        assert np.abs(reference.resize(image, how).astype(int) - other).max() <= 1


@pytest.mark.parametrize("how", ["32", "0x3", "3x", "x", "32x32x3", "32 x 32", "5000x5", "-1x3",
                                 "short 36", "short 36 crop", "short 30 crop 32", "short 0 crop 0",
                                 "short 36 crop 32x37", "32x32 ", "32x32 lanczos",
                                 "bicubic", " bicubic", "short bicubic", "short 36 bicubic",
                                 "short 36 crop bilinear", "32x32 bilinear bicubic", "32x bicubic",
                                 "32x32  bicubic", "short 3 bicubic crop 3"])
def test_no_size(tmp_path, run_quern, how):
    told = run_quern("data", "info", folder(tmp_path, {"a/1": GOOD}), "--resize", how, status=2).stderr
    assert "does not say how to resize" in told and "--resize" in told


def test_sides_that_differ_too_much(tmp_path, refused, info):
    path = folder(tmp_path, {"a/1": packed(np.zeros((1, 60000), np.uint8))})
    assert "a/1" in refused(path, "--resize", "short 36 crop 32")
    assert info(path, "--resize", "2x3")["features"] == 6


def test_shape(tmp_path, info, run_quern):
    np.save(tmp_path / "a.npy", np.zeros((3, 12), np.uint8))
    told = info(tmp_path / "a.npy", "--shape", "2x3x2")
    assert (told["channels"], told["rows"], told["columns"]) == (2, 3, 2)
    told = info(tmp_path / "a.npy", "--shape", "3x4")
    assert (told["channels"], told["rows"], told["columns"]) == (1, 3, 4)
    assert told["digest"] == info(tmp_path / "a.npy")["digest"]
    for shape in "12", "1x2x3x2", "0x12", "ax3", "3x4x":
        told = run_quern("data", "info", tmp_path / "a.npy", "--shape", shape, status=2).stderr
        assert "not the shape" in told and "at --shape" in told
    assert "12 features" in run_quern("data", "info", tmp_path / "a.npy", "--shape", "3x5", status=1).stderr
    images = folder(tmp_path / "all", {"a/1": GOOD})
    assert "--shape" in run_quern("data", "info", images, "--shape", "3x4", status=1).stderr
    assert "--resize" in run_quern("data", "info", tmp_path / "a.npy", "--resize", "3x4", status=1).stderr


# ---------------------------------------------------------------- looking at data

def test_sheet(tmp_path, run_quern):
    """A row for each class, from the left, on white."""
    files = {f"{kind}/{i:02}": packed(photograph(10 * k + i, 6, 9))
             for k, kind in enumerate("ab") for i in range(20 if k else 3)}
    run_quern("data", "info", folder(tmp_path / "all", files), "--sheet", tmp_path / "s.png")
    sheet = pillow((tmp_path / "s.png").read_bytes())
    want = np.full((2 + 2 * 8, 2 + 16 * 11, 3), 255, np.uint8)
    for k, kind in enumerate("ab"):
        for i in range(16 if k else 3):
            want[2 + 8 * k:8 + 8 * k, 2 + 11 * i:11 + 11 * i] = pillow(files[f"{kind}/{i:02}"])
    assert np.array_equal(sheet, want)


def test_sheet_of_large_images(tmp_path, run_quern):
    image = photograph(1, 300, 120, 1)
    np.save(tmp_path / "a.npy", image.reshape(1, -1))
    run_quern("data", "info", tmp_path / "a.npy", "--shape", "300x120", "--sheet", tmp_path / "s.png")
    sheet = pillow((tmp_path / "s.png").read_bytes(), "L")
    assert sheet.shape == (100, 2 + 16 * 40)
    assert np.array_equal(sheet[2:98, 2:40], reference.resize(image, "96x38"))


def test_no_sheet(tmp_path, run_quern):
    np.save(tmp_path / "a.npy", np.zeros((3, 12), np.uint8))
    told = run_quern("data", "info", tmp_path / "a.npy", "--sheet", tmp_path / "s.png", status=1).stderr
    assert "--shape" in told and not (tmp_path / "s.png").exists()
    told = run_quern("data", "info", tmp_path / "a.npy", "--shape", "3x4", "--sheet", tmp_path / "a.npy",
                     status=2).stderr
    assert "--sheet" in told and np.load(tmp_path / "a.npy").shape == (3, 12)


# ---------------------------------------------------------------- what cannot be read

def two_frames():
    """A second frame of another height after the first: the decoder must not take it."""
    content = packed(photograph(1), "JPEG")
    begin = content.index(b"\xff\xc0")
    end = begin + 2 + int.from_bytes(content[begin + 2:begin + 4], "big")
    other = content[begin:begin + 5] + b"\0\7" + content[begin + 7:end]
    return content[:end] + other + content[end:]


GOOD = packed(photograph(1))
BROKEN = {
    "text": (b"no image\n", "the file is not an image"),
    "empty": (b"", "the file is empty"),
    "webp": (b"RIFF\0\0\0\0WEBPVP8 ", "the WebP file is cut off in its head"),
    "cut png": (GOOD[:-40], "the PNG file is broken"),
    "changed png": (GOOD[:200] + bytes([GOOD[200] ^ 4]) + GOOD[201:], "the PNG file is broken"),
    "head of png": (GOOD[:20], "cut off in its head"),
    **{f"{size} bytes of png": (GOOD[:size], "the PNG file is cut off in its first 8 bytes") for size in (1, 4, 7)},
    "nearly png": (b"\x89PNX", "not an image"),
    "cut jpeg": (packed(photograph(1), "JPEG")[:-60], "the JPEG file is broken"),
    "head of jpeg": (packed(photograph(1), "JPEG")[:100], "cut off in its head"),
    "two frames": (two_frames(), "the JPEG file is broken"),
    "cmyk": (packed(Image.fromarray(photograph(1)).convert("CMYK"), "JPEG"), "CMYK"),
    "no pixels": (png(0, 5, 8, 2, b""), "has no pixels"),
    "huge": (png(60000, 60000, 8, 2, b""), "claims a height of 60000"),
    "wide": (png(70000, 2, 8, 2, b""), "a width of 70000"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken(tmp_path, info, refused, kind):
    content, words = BROKEN[kind]
    good = {f"a/{i}": packed(photograph(i)) for i in range(3)}
    path = folder(tmp_path / "all", {**good, "a/1x": content})
    for where in path, tar(tmp_path / "a.tar", {**good, "a/1x": content}):
        told = refused(where)
        assert words in told and "a/1x" in told and "--skip-broken" in told
        told = info(where, "--skip-broken")
        assert told["digest"] == digest([pillow(good[n]) for n in sorted(good)], [0] * 3)
        assert told["note"] == "1 of 4 files cannot be read and are left out: a/1x"


def test_the_first_by_name_is_told(tmp_path, refused):
    """Whichever thread comes first."""
    files = {f"a/{i:03}": b"text" if i in (170, 171, 190) else GOOD for i in range(200)}
    path = folder(tmp_path, files)
    for _ in range(5):
        assert "a/170" in refused(path)


HIDES = r"""
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
    void *(*next)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof next);
    static const char *const hidden[] = {"turbojpeg", "libpng", "libwebp", "libgif", "libtiff"};
    for (int i = 0; name && i < 5; i++)
        if (strstr(name, hidden[i]))
            return NULL;
    return next(name, flags);
}
"""


def test_missing_libraries(tmp_path, run_quern):
    """They are named, with the package; no file is to blame."""
    hides = tmp_path / "hides.so"
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-x", "c", "-o", hides, "-"],
                   input=HIDES, text=True, check=True)
    hidden = {**os.environ, "LD_PRELOAD": str(hides)}
    for kind, package in (("JPEG", "libturbojpeg0"), ("PNG", "libpng16-16"), ("WebP", "libwebp7"),
                          ("GIF", "libgif7"), ("TIFF", "libtiff6")):
        path = folder(tmp_path / kind, {"a/1": packed(photograph(1), kind)})
        for option in ["--unlabelled"], ["--skip-broken"]:
            told = run_quern("data", "info", path, *option, status=None, env=hidden)
            assert told.returncode != 0 and package in told.stderr and kind in told.stderr
        assert package in run_quern("version", env=hidden).stdout
        assert package not in run_quern("version").stdout


def test_all_broken(tmp_path, refused):
    assert "none of the 2 files" in refused(folder(tmp_path, {"a/1": b"x", "a/2": b""}), "--skip-broken")


def test_a_broken_colour_makes_no_colours(tmp_path, info):
    """What is left out has no influence."""
    files = {"a/1": packed(photograph(1, channels=1)), "a/2": GOOD[:-40]}
    told = info(folder(tmp_path, files), "--skip-broken")
    assert told["channels"] == 1 and told["digest"] == digest([pillow(files["a/1"], "L")], [0])


def test_sizes_differ(tmp_path, refused):
    told = refused(folder(tmp_path, {"a/1": GOOD, "b/2": packed(photograph(1, 7, 8))}))
    assert "differ in size: 7x8 here, 21x30 in a/1" in told and "b/2" in told and "--resize" in told


def test_files_at_the_top(tmp_path, info, refused):
    path = folder(tmp_path, {"a/1": GOOD, "b/2": GOOD, "stray.png": GOOD})
    assert "stray.png" in refused(path)
    assert info(path, "--unlabelled")["target"] == "none"


def test_empty_folders(tmp_path, refused):
    assert "there is no file" in refused(tmp_path)
    (tmp_path / "a").mkdir()
    assert "there is no file" in refused(tmp_path)


def test_links_and_pipes(tmp_path, info, refused):
    path = folder(tmp_path / "all", {"a/1": GOOD})
    (path / "a" / "2").symlink_to(path / "a" / "1")
    assert info(path)["items"] == 2
    (path / "a" / "b").mkdir()
    (path / "a" / "b" / "up").symlink_to(path / "a")
    assert "a link leads to a folder in which it lies" in refused(path)
    (path / "a" / "b" / "up").unlink()
    (path / "a" / "gone").symlink_to("nothing")
    assert "a link leads to nothing" in refused(path)
    (path / "a" / "gone").unlink()
    os.mkfifo(path / "a" / "3")
    assert "not a regular file" in refused(path)


def test_options_without_use(tmp_path, run_quern):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4\n")
    assert "--skip-broken" in run_quern("data", "info", path, "--skip-broken", status=1).stderr
    images = folder(tmp_path / "all", {"a/1": GOOD})
    for option in ("--label", "--features"):
        assert "no columns" in run_quern("data", "info", images, option, "1", status=1).stderr


# ---------------------------------------------------------------- archives that are broken

def entry(kind, name="a/2", **values):
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in values.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize("made, words", [
    (entry(tarfile.SYMTYPE, linkname="1"), "a link"), (entry(tarfile.LNKTYPE, linkname="a/1"), "a link"),
    (entry(tarfile.GNUTYPE_SPARSE), "sparse"), (entry(tarfile.FIFOTYPE), "not a regular file"),
    (entry(tarfile.REGTYPE, pax_headers={"GNU.sparse.major": "1"}), "sparse"),
    (entry(tarfile.REGTYPE, "a/1"), "twice")])
def test_entries(tmp_path, refused, info, made, words):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(entry(tarfile.REGTYPE, "a/1", size=len(GOOD)), io.BytesIO(GOOD))
        archive.addfile(made, io.BytesIO())
    told = refused(tmp_path / "a.tar")
    assert words in told and (made.name in told or made.pax_headers)
    if words != "twice" and not made.pax_headers:
        made.name = "a/.2"  # hidden files may be anything
        with tarfile.open(tmp_path / "b.tar", "w") as archive:
            archive.addfile(entry(tarfile.REGTYPE, "a/1", size=len(GOOD)), io.BytesIO(GOOD))
            archive.addfile(made, io.BytesIO())
        assert info(tmp_path / "b.tar")["items"] == 1


def test_cut_archives(tmp_path, refused):
    whole = tar(tmp_path / "a.tar", {"a/1": GOOD, "a/2": GOOD}).read_bytes()
    cut = tmp_path / "cut.tar"
    for size in 700, 1024 + 600, len(whole) // 2:
        cut.write_bytes(whole[:size])
        if any(whole[i:i + 512] == bytes(512) for i in range(0, size - 511, 512)):
            continue
        assert "cut off" in refused(cut)
    cut.write_bytes(whole[:5] + b"x" + whole[6:])
    assert "check sum" in refused(cut)
    cut.write_bytes(gzip.compress(whole)[:-9])
    assert "cut off" in refused(cut)
    archive = zip_of(tmp_path / "a.zip", {"a/1": GOOD}).read_bytes()
    (tmp_path / "b.zip").write_bytes(archive[:60] + bytes([archive[60] ^ 1]) + archive[61:])
    assert "a/1" in refused(tmp_path / "b.zip")


def test_names_that_lead_elsewhere(tmp_path, info):
    files = {"a/1": GOOD, "../b/1": GOOD, "/b/2": GOOD, "./b//3": GOOD}
    told = info(tar(tmp_path / "a.tar", files))
    assert told["class_names"] == ["a", "b"] and told["counts"] == [1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar"]


def test_the_shape_of_a_model(tmp_path, run_quern):
    """The same numbers as other pixels are other data: refused where a file tells its shape, and taken
    for those of the training where it tells none."""
    pixels = np.random.default_rng(5).integers(0, 256, (40, 12, 10), np.uint8)
    labels, table = tmp_path / "labels", tmp_path / "table.csv"
    labels.write_bytes(struct.pack(">2I", 0x801, 40) + bytes(range(2)) * 20)
    np.savetxt(table, np.c_[np.arange(40) % 2, pixels.reshape(40, -1)], fmt="%d", delimiter=",")
    file = {}
    for sides in (12, 10), (10, 12):
        file[sides] = tmp_path / f"{sides[0]}-images"
        file[sides].write_bytes(struct.pack(">4I", 0x803, 40, *sides) + pixels.tobytes())
    model, other = tmp_path / "m.safetensors", tmp_path / "other"
    job = ["--labels", labels, "--model", "conv 2 3x3 relu; globalpool; dense 2 softmax",
           "--epochs", "1", "--quiet"]
    run_quern("train", "--data", file[12, 10], *job, "-o", model)
    run_quern("replay", model, "--data", table)
    run_quern("replay", model, "--data", file[10, 12], "--labels", labels, "--shape", "12x10")
    for words in (["predict", model, "--data", file[10, 12], "-o", other],
                  ["replay", model, "--data", file[10, 12], "--labels", labels],
                  ["train", "--data", file[12, 10], *job, "-o", other, "--test", file[10, 12],
                   "--test-labels", labels]):
        said = run_quern(*words, status=1).stderr
        assert "items of 1x10x12, the model takes 1x12x10" in said and "--shape" in said
    said = run_quern("train", "--data", file[10, 12], *job, "-o", other, "--init-from", model,
                     status=1).stderr
    assert "for an input of 1x12x10" in said and "for an input of 1x10x12" in said
    assert not other.exists()


def test_plan_of_images(tmp_path, run_quern):
    data = folder(tmp_path / "f", some_files())
    run_quern("plan", "--data", data, "--model", "conv 2 3x3 relu; globalpool; dense 3 softmax",
              "--team", "host(cpu 60k)")
