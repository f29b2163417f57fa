"""Images in parts (--data-parts): folders and archives of the ranks are one data set, and the images of one folder
are dealt to them. Models and digests are those of one process."""

import io
import json
import shutil
import tarfile

import pytest

import ranks
import recipes

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

WORDS = ["--model", "conv 2 3x3 relu; maxpool 4; dense 4 softmax", "--threads", "1", "--batch", "8", "--valid", "0.2"]
SHARDS = [{"cat": 17, "dog": 5}, {"dog": 9, "fish": 14}, {"ant": 33}]


def image(seed, size=(12, 16), grey=False, kind="JPEG"):
    draw = np.random.default_rng(seed)
    made = Image.fromarray(draw.integers(0, 256, (size[0] // 4, size[1] // 4, 3), np.uint8).repeat(4, 0).repeat(4, 1))
    packed = io.BytesIO()
    (made.convert("L") if grey else made).save(packed, kind)
    return packed.getvalue()


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Three folders: the second has grey images alone, the third one class. An archive of each, and one of all."""
    folder = tmp_path_factory.mktemp("shards")
    for k, classes in enumerate(SHARDS):
        for name, count in classes.items():
            (folder / f"s{k}" / name).mkdir(parents=True)
            for i in range(count):
                kind = "PNG" if i % 3 else "JPEG"
                (folder / f"s{k}" / name / f"{k}-{i:02}.{kind.lower()}").write_bytes(
                    image(1000 * k + i, grey=k == 1, kind=kind))
        (folder / f"s{k}" / next(iter(classes)) / "README").write_text("no image")
        shutil.copytree(folder / f"s{k}", folder / "all" / "inside", dirs_exist_ok=True)
        with tarfile.open(folder / f"s{k}.tar", "w") as archive:
            archive.add(folder / f"s{k}", f"shard-{k}")
    return folder


def told(run_quern, folder, *data, more=()):
    done = run_quern("train", *[word for name in data for word in ("--data", name)], *WORDS, *more, "--quiet",
                     "-o", "one", cwd=folder)
    assert done.returncode == 0
    return recipes.sha256(folder / "one")


@pytest.fixture(scope="module")
def of_shards(run_quern, shards):
    return told(run_quern, shards, "s0", "s1", "s2")


@pytest.fixture(scope="module")
def of_folder(run_quern, shards):
    return told(run_quern, shards, "all")


def test_folders_and_archives_of_the_ranks(quern, shards, of_shards, tmp_path):
    """Each rank names its own, in the second run with a rank that has two; then three are dealt to four."""
    for lists in [["s0"], ["s1.tar"], ["s2"]], [["s0.tar", "s1"], ["s2.tar"]]:
        own = {k: [word for name in names for word in ("--data-parts", shards / name)] for k, names in enumerate(lists)}
        ranks.run(quern, len(lists), "train", *WORDS, "--quiet", "-o", tmp_path / "m", own=own)
        assert recipes.sha256(tmp_path / "m") == of_shards
    names = [word for k in range(3) for word in ("--data-parts", shards / f"s{k}.tar")]
    done = ranks.run(quern, 4, "train", *names, *WORDS, "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == of_shards
    assert "3 files are the parts of 4 ranks: 78 items in all" in done[0][2]


@pytest.mark.parametrize("count", [2, 3])
def test_one_folder_is_dealt(quern, shards, of_folder, tmp_path, count):
    done = ranks.run(quern, count, "train", "--data-parts", shards / "all", *WORDS, "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == of_folder
    assert f"78 images are the parts of {count} ranks" in done[0][2]


def test_masks(quern, run_quern, shards, tmp_path):
    """Of the images that are dealt, and of those of each rank; the second folder alone has the class 2."""
    masks = tmp_path / "masks"
    for k, folder in enumerate([shards / "s0", shards / "s2"]):
        for path in folder.glob("*/*.[jp]*g"):
            (masks / path.parent.name).mkdir(parents=True, exist_ok=True)
            drawn = np.random.default_rng(len(path.name)).integers(0, 2 + k, (12, 16), np.uint8)
            Image.fromarray(drawn).save(masks / path.parent.name / f"{path.stem}.png")
        shutil.copytree(folder, tmp_path / "both", dirs_exist_ok=True)
    words = ["--model", "conv 4 3x3 pad 1 relu; conv 3 1x1 softmax", "--threads", "1", "--masks", masks, "--epochs", "2",
             "--valid", "0.2", "--quiet"]
    run_quern("train", "--data", tmp_path / "both", *words, "-o", tmp_path / "one")
    ranks.run(quern, 3, "train", "--data-parts", tmp_path / "both", *words, "--data-copies", "2", "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == recipes.sha256(tmp_path / "one")


def test_more_ranks_than_images(quern, run_quern, shards, tmp_path):
    (tmp_path / "few" / "0").mkdir(parents=True)
    for i in range(3):
        shutil.copy(shards / "s0" / "cat" / "0-01.png", tmp_path / "few" / "0" / f"{i}.png")
    want = json.loads(run_quern("data", "info", tmp_path / "few", "--json").stdout)["digest"]
    done = ranks.run(quern, 4, "data", "stats", "--json", "--data-parts", tmp_path / "few")
    assert json.loads(done[0][1])["digest"] == want


def test_a_killed_rank(quern, run_quern, shards, tmp_path):
    more = ["--epochs", "40"]
    want = told(run_quern, shards, "all", more=more)
    with ranks.Ranks(quern, 3, "train", "--data-parts", shards / "all", *WORDS, *more, "--json",
                     "-o", tmp_path / "m") as job:
        for line in job.rank[0].stdout:
            if json.loads(line)["event"] == "epoch":
                break
        job.rank[1].kill()
        assert [code for code, _, _ in job.wait()] == [0, -9, 0]
    assert recipes.sha256(tmp_path / "m") == want


def test_what_is_not_one_data_set(quern, shards, tmp_path):
    large, number = tmp_path / "large" / "cat", tmp_path / "number" / "01"
    for folder, size in (large, (20, 20)), (number, (12, 16)):
        folder.mkdir(parents=True)
        (folder / "1.jpg").write_bytes(image(1, size))
    for other, says in [(large.parent, "data.resize"), (number.parent, "the folders of classes have numbers")]:
        done = ranks.run(quern, 2, "train", *WORDS, "-o", tmp_path / "m", status=1,
                         own={0: ["--data-parts", shards / "s0"], 1: ["--data-parts", other]})
        said = done[0][2]
        assert says.replace("data.resize", "--resize") in said and "rank 1 on " in said
