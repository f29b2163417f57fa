"""Photographs as a newcomer has them: image files named one by one (docs/images.md)."""

import gzip
import json

import numpy as np
import pytest

from test_pictures import GOOD, digest, folder, packed, photograph, pillow


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
