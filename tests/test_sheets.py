"""Contact sheets of mixtures and of masks: what they show is what the oracle's training sees (24.22, 24.23, 24.57, 24.58)."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import augment  # noqa: E402
import mix  # noqa: E402
from order import permutation  # noqa: E402
from philox import ORDER  # noqa: E402

SHAPE, ITEMS = (3, 9, 7), 24
WORDS = "pad 2; crop; flip; cutout 3"


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    values, labels = rng.integers(0, 256, (ITEMS, 189)).astype(np.uint8), rng.integers(0, 3, ITEMS)
    masks = rng.integers(0, 4, (ITEMS, 9, 7)).astype(np.uint8)
    masks[masks == 3] = 255
    np.savez(tmp_path / "labelled.npz", X=values, y=labels)
    np.save(tmp_path / "values.npy", values)
    np.save(tmp_path / "masks.npy", masks)
    return tmp_path, values, labels, masks


def seen(mixes, words, values, masks, epoch, item):
    """The values, the mask and the partner of an item in an epoch."""
    order = permutation(1, ITEMS, ORDER, epoch)
    other = int(order[mix.partners(int(np.flatnonzero(order == item)[0]), ITEMS)])
    own, partner = (augment.values(words, values, SHAPE, 1, epoch, [i]) for i in (item, other))
    moved = [augment.masks(words, masks, 1, epoch, [i]) for i in (item, other)]
    mask = mixes.masks(*moved, epoch, [item]) if mixes.cut else None
    return mixes.values(own, partner, epoch, [item]), mask, other


def colours(mask):
    """The colours of PASCAL VOC: bit 3 k + c of a class is bit 7 - k of channel c."""
    made = np.zeros((*mask.shape, 3), np.uint8)
    for bit in range(8):
        made[..., bit % 3] |= (mask.astype(np.uint8) >> bit & 1) << (7 - bit // 3)
    return made


def picture(values):
    return values.reshape(SHAPE).transpose(1, 2, 0)


@pytest.mark.parametrize("option", ["mixup", "cutmix"])
def test_mixtures_with_their_classes(files, run_quern, option):
    """A picture is enlarged to 91 pixels of 96, and below it are lines for both classes, the item's own first."""
    folder, values, labels, masks = files
    mixes = mix.Mix(SimpleNamespace(mixup=0.5 * (option == "mixup"), cutmix=0.5 * (option == "cutmix"), shape=SHAPE, seed=1))
    run_quern("data", "info", folder / "labelled.npz", "--shape", "3x9x7", "--sheet", folder / "s.png", f"--{option}", "0.5", "--augment", WORDS)
    sheet = np.asarray(Image.open(folder / "s.png"))
    zoom, high, wide = 10, 9 * 10 + 2 * 9 + 2, 96
    assert sheet.shape == (2 + 3 * (high + 2), 2 + 16 * (wide + 2), 3)
    texts = {}
    for kind in range(3):
        item = int(np.argmax(labels == kind))
        for place in range(16):
            want, other, own = values[item], None, 1.0
            if place > 0:
                want, _, other = seen(mixes, WORDS, values, masks, place - 1, item)
                own = mixes.shares(place - 1, [item])[0][0]
            cell = sheet[2 + kind * (high + 2):, 2 + place * (wide + 2):][:high, :wide]
            assert np.array_equal(cell[:90:zoom, :70:zoom], picture(want))
            assert (cell[:90, :70] == np.repeat(np.repeat(picture(want), zoom, 0), zoom, 1)).all() and (cell[:90, 70:] == 255).all()
            lines = [(own, kind)] + ([(1 - own, int(labels[other]))] if place > 0 else [])
            for line in range(2):
                drawn = cell[92 + 9 * line:101 + 9 * line]
                assert (drawn == drawn[..., :1]).all() and (drawn < 255).any() == (line < len(lines))
                if line < len(lines):  # the same text is the same picture, and another text another
                    text = ("%3.0f%%" % (100 * lines[line][0]), lines[line][1])
                    assert texts.setdefault(text, drawn.tobytes()) == drawn.tobytes()
    assert len(set(texts.values())) == len(texts) > 20


@pytest.mark.parametrize("words", [None, WORDS, "jitter brightness 1"])
@pytest.mark.parametrize("cut", [0, 0.7])
def test_masks_beside_their_pictures(files, run_quern, words, cut):
    folder, values, _, masks = files
    mixes = mix.Mix(SimpleNamespace(mixup=0, cutmix=cut, shape=SHAPE, seed=1))
    more = (["--augment", words] if words else []) + (["--cutmix", "0.7"] if cut else [])
    run_quern("data", "info", folder / "values.npy", "--labels", folder / "masks.npy", "--shape", "3x9x7",
              "--sheet", folder / "s.png", *more)
    sheet = np.asarray(Image.open(folder / "s.png"))
    rows = ITEMS if more else ITEMS // 8
    assert sheet.shape == (2 + rows * 11, 2 + 16 * 9, 3)
    for row in range(0, rows, 5):
        for place in range(8):
            item = row if more else row * 8 + place
            want, mask = values[item], masks[item]
            if more and place > 0 and cut:
                want, mask, _ = seen(mixes, words or "", values, masks, place - 1, item)
            elif more and place > 0:
                want = augment.values(words, values, SHAPE, 1, place - 1, [item])
                mask = augment.masks(words, masks, 1, place - 1, [item])
            cell = sheet[2 + row * 11:, 2 + 18 * place:][:9, :16]
            assert np.array_equal(cell[:, :7], picture(want)) and (cell[:, 7:9] == 255).all()
            assert np.array_equal(cell[:, 9:], colours(mask.reshape(9, 7)))


def test_what_a_training_would_refuse(files, run_quern):
    folder = files[0]
    np.save(folder / "small.npy", np.zeros((ITEMS, 3, 3), np.uint8))
    np.save(folder / "several.npy", np.zeros((ITEMS, 4), np.uint8))
    several = ["--labels", folder / "masks.npy"]
    for words, said in ((["--mixup", "1", *several], ["--mixup", "take --cutmix"]),
                        (["--mixup", "1", "--labels", folder / "several.npy"], ["--mixup", "other labels"]),
                        (["--cutmix", "1", "--labels", folder / "small.npy"], ["3x3 pixels", "9x7", "--cutmix"]),
                        (["--augment", "flip", "--labels", folder / "small.npy"], ["3x3 pixels", "--augment"]),
                        (["--mixup", "1", "--cutmix", "1"], ["one way only"]), (["--mixup", "1.5"], ["--mixup", "up to 1"])):
        told = run_quern("data", "info", folder / "values.npy", "--shape", "3x9x7", "--sheet", folder / "t.png", *words, status=2).stderr
        assert all(word in told for word in said), told
    assert not (folder / "t.png").exists()
    told = run_quern("data", "info", folder / "values.npy", "--mixup", "1", status=2).stderr
    assert "--mixup does nothing without --sheet" in told
    run_quern("data", "info", folder / "values.npy", "--labels", folder / "small.npy", "--shape", "3x9x7", "--sheet", folder / "t.png")
