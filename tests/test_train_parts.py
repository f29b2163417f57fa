"""Data in parts (`train --data-parts`): the files are spread over the ranks, and no rank reads all.
The bytes of the model are those of one process with all files, on whatever ranks they are and
whichever rank dies."""

import json
import shutil

import numpy
import pytest

import ranks
import recipes

DENSE = ["--model", "dense 16 relu; dense 5 softmax", "--threads", "1", "--batch", "64"]
CONV = ["--shape", "28x28", "--model", "conv 4 5x5 relu; maxpool 4; dense 5 softmax", *DENSE[2:]]
SIZES = [400, 90, 700, 251]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """CSV files with weights and classes by name: the second has bytes alone, the others floats, too."""
    folder = tmp_path_factory.mktemp("parts")
    draw = numpy.random.default_rng(7)
    for i, items in enumerate(SIZES):
        values = draw.integers(0, 256, (items, 12))
        names = [f"class-{k}" for k in values[:, :3].sum(1) % 5]
        lines = [f"{name},{1 + k % 3}," + ",".join(map(str, row[:-1])) + f",{row[-1]}{'' if i == 1 else '.5'}"
                 for k, (name, row) in enumerate(zip(names, values.tolist()))]
        head = "class,weight," + ",".join(f"v{k}" for k in range(12))
        (folder / f"p{i}.csv").write_text("\n".join([head, *lines]) + "\n")
    return folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Bytes, more of them than a rank keeps: 4 MiB."""
    folder = tmp_path_factory.mktemp("images")
    draw = numpy.random.default_rng(8)
    for i, items in enumerate([3500, 500, 2000, 1500]):
        labels = draw.integers(0, 5, items)
        values = (labels[:, None] * 40 + draw.integers(0, 90, (items, 784))).astype("uint8")
        numpy.save(folder / f"x{i}.npy", values)
        numpy.save(folder / f"y{i}.npy", labels)
    return folder


def named(option, folder, letters, numbers=range(4)):
    return [word for i in numbers for word in (option, folder / letters.format(i))]


def of_images(option, folder):
    return ["train", *named(option, folder, "x{}.npy"), *named("--labels", folder, "y{}.npy")]


def alone(run_quern, out, *words):
    run_quern(*words, "--quiet", "-o", out)
    return recipes.sha256(out)


TABLE = ["--label", "class", "--weight", "weight", "--valid", "0.2", "--scale", "standard", "--epochs", "2", *DENSE]


@pytest.fixture(scope="module")
def of_table(quern, tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "m"
    ranks.run(quern, 1, "train", *named("--data", tables, "p{}.csv"), *TABLE, "--quiet", "-o", out)
    return recipes.sha256(out)


@pytest.mark.parametrize("count", [2, 3])
def test_files_that_are_dealt(quern, tables, of_table, tmp_path, count):
    done = ranks.run(quern, count, "train", *named("--data-parts", tables, "p{}.csv"), *TABLE, "--data-copies", "9",
                     "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == of_table
    assert f"{count} ranks have each part: the copies on a rank take up to 0.1 MiB" in done[0][2]
    assert f"4 files are the parts of {count} ranks: {sum(SIZES)} items in all" in done[0][2]


@pytest.mark.parametrize("more", [["--scale", "robust", "--weight", "weight"], ["--scale", "minmax", "--drop", "weight"]])
def test_numbers_fitted_to_columns(quern, run_quern, tables, tmp_path, more):
    """Each rank looks at its own rows alone."""
    more = ["--label", "class", "--valid", "0.2", "--epochs", "1", *more, *DENSE]
    digest = alone(run_quern, tmp_path / "a", "train", *named("--data", tables, "p{}.csv"), *more)
    ranks.run(quern, 3, "train", *named("--data-parts", tables, "p{}.csv"), *more, "--quiet", "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == digest


def test_rows_that_become_inputs(quern, run_quern, tmp_path):
    """Categories, dates and gaps: an item is made of its row when it is needed. A rank keeps less than all items."""
    draw = numpy.random.default_rng(9)
    for i, rows in enumerate([2500, 900, 2400]):
        lines = [f"{k % 3},{'' if k % 9 == 4 else f'c{k % 239}'},{'' if k % 7 == 3 else f'{number:.4f}'},"
                 f"{'' if k % 11 == 2 else f'2026-{1 + k % 12:02}-03'}" for k, number in enumerate(draw.normal(size=rows))]
        (tmp_path / f"p{i}.csv").write_text("\n".join(["y,city,size,day", *lines]) + "\n")
    more = ["--label", "y", "--valid", "0.2", "--missing", "median", "--scale", "standard", "--epochs", "2",
            "--model", "dense 3 softmax", "--threads", "1", "--batch", "256", "-o"]
    one = run_quern("train", *named("--data", tmp_path, "p{}.csv", range(3)), *more, tmp_path / "a")
    done = ranks.run(quern, 3, "train", *named("--data-parts", tmp_path, "p{}.csv", range(3)), *more, tmp_path / "m",
                     "--part-cache", "4")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "m").read_bytes()
    for note in ('645 values of column "city" are missing', '528 dates of column "day" are missing'):
        assert note in one.stderr and note in done[0][2]


def test_files_of_each_rank(quern, tables, of_table, tmp_path):
    own = {i: ["--data-parts", tables / f"p{i}.csv"] for i in range(4)}
    done = ranks.run(quern, 4, "train", *TABLE, "-o", tmp_path / "m", own=own)
    assert recipes.sha256(tmp_path / "m") == of_table
    assert f"4 files are the parts of 4 ranks: {sum(SIZES)} items in all" in done[0][2]


def test_a_rank_without_files(quern, run_quern, tables, tmp_path):
    words = named("--data", tables, "p{}.csv", [2, 0])
    digest = alone(run_quern, tmp_path / "a", "train", *words, *TABLE)
    ranks.run(quern, 3, "train", *[str(w).replace("--data", "--data-parts") for w in words], *TABLE, "--quiet",
              "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == digest


def test_several_labels(quern, run_quern, tmp_path):
    """One of numbers, of which some are missing, and one of texts; a rank without rows; other texts are refused."""
    draw = numpy.random.default_rng(4)
    for k, items in enumerate([90, 300]):
        rows = [f"{draw.choice(['0', '1', ''])},{draw.choice(['no', 'yes'])},{x:.3f},{c}"
                for x, c in zip(draw.normal(size=items), draw.choice(list("abc"), items))]
        (tmp_path / f"s{k}.csv").write_text("\n".join(["a,b,x,c", *rows]) + "\n")
    words = ["--label", "a,b", "--model", "dense 8 relu; dense 2 sigmoid", "--epochs", "2", "--valid", "0.2", *DENSE[2:]]
    digest = alone(run_quern, tmp_path / "a", "train", *named("--data", tmp_path, "s{}.csv", range(2)), *words)
    ranks.run(quern, 3, "train", *named("--data-parts", tmp_path, "s{}.csv", range(2)), *words, "--quiet",
              "-o", tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == digest
    (tmp_path / "s2.csv").write_text("a,b,x,c\n1,good,0.5,a\n0,bad,1.5,b\n")
    own = {i: ["--data-parts", tmp_path / f"s{i + 1}.csv"] for i in range(2)}
    done = ranks.run(quern, 2, "train", *words, "-o", tmp_path / "m", own=own, status=1)
    assert "which labels there are, or the texts for 0 and 1, differs" in done[0][2]


def test_more_than_a_rank_keeps(quern, run_quern, images, tmp_path):
    more = [*CONV, "--epochs", "1", "--valid", "0.1"]
    digest = alone(run_quern, tmp_path / "a", *of_images("--data", images), *more)
    ranks.run(quern, 3, *of_images("--data-parts", images), *more, "--part-cache", "4", "--quiet", "-o",
              tmp_path / "m")
    assert recipes.sha256(tmp_path / "m") == digest


def test_search(quern, run_quern, images):
    """Each rank trains whole runs, and fetches the items of others."""
    more = ["--grid", "lr 0.01,0.1", "--folds", "2", "--epochs", "1", *DENSE, "--json"]

    def found(line):
        return [{**{name: one[name] for name in ("setting", "mean", "deviation")},
                 "models": [fold["model"] for fold in one["folds"]]} for one in json.loads(line)["settings"]]

    want = run_quern("search", *of_images("--data", images)[1:], *more).stdout
    done = ranks.run(quern, 3, "search", *of_images("--data-parts", images)[1:], "--part-cache", "4", *more)
    assert found(done[0][1]) == found(want)


def after_an_epoch(job):
    """Reads what rank 0 prints, up to the end of the first epoch."""
    for line in job.rank[0].stdout:
        if json.loads(line)["event"] == "epoch":
            return


LONG = ["--epochs", "8", "--part-cache", "4", "--json"]


def test_the_files_of_a_killed_rank_are_read_again(quern, run_quern, images, tmp_path):
    digest = alone(run_quern, tmp_path / "a", *of_images("--data", images), *DENSE, "--epochs", "8")
    with ranks.Ranks(quern, 3, *of_images("--data-parts", images), *DENSE, *LONG, "-o", tmp_path / "m") as job:
        after_an_epoch(job)
        job.rank[1].kill()
        done = job.wait()
    assert [code for code, _, _ in done] == [0, -9, 0]
    assert recipes.sha256(tmp_path / "m") == digest


@pytest.mark.parametrize("what", ["gone", "other", "copied"])
def test_nobody_has_the_files_of_a_killed_rank(quern, run_quern, images, tmp_path, what):
    own = {i: ["--data-parts", tmp_path / f"x{i}.npy", "--labels", images / f"y{i}.npy"] for i in range(3)}
    for i in range(3):
        shutil.copy(images / f"x{i}.npy", tmp_path)
    more = ["--data-copies", "2"] if what == "copied" else []
    with ranks.Ranks(quern, 3, "train", *DENSE, *LONG, *more, "-o", tmp_path / "m", own=own) as job:
        after_an_epoch(job)
        if what != "other":
            (tmp_path / "x1.npy").unlink()
        else:
            numpy.save(tmp_path / "x1.npy", numpy.zeros((500, 784), "uint8"))
        job.rank[1].kill()
        done = job.wait()
    said = done[0][1] + done[0][2]
    if what == "copied":
        assert [code for code, _, _ in done] == [0, -9, 0]
        three = [*named("--data", images, "x{}.npy", range(3)), *named("--labels", images, "y{}.npy", range(3))]
        assert recipes.sha256(tmp_path / "m") == alone(run_quern, tmp_path / "a", "train", *three, *DENSE, *LONG[:2])
        return
    assert [code for code, _, _ in done] == [1, -9, 1]
    assert "is gone, and no other rank can read its part" in said
    assert str(tmp_path / "x1.npy") in said and "put the files of all parts where every rank can read them" in said
    assert all(err.count(f"({tmp_path}/x1.npy)") < 2 for _, _, err in done)
    assert ("there is no such file" if what == "gone" else "not those that the rank had") in said
    assert not (tmp_path / "m").exists()


def test_going_on_with_other_ranks(quern, tables, of_table, tmp_path):
    words = ["train", *named("--data-parts", tables, "p{}.csv"), *TABLE, "--checkpoint", "state",
             "--checkpoint-every", "1", "--resume", "-o", "m"]
    with ranks.Ranks(quern, 2, *words, "--json", cwd=tmp_path) as job:
        after_an_epoch(job)
        for rank in job.rank:
            rank.kill()
    ranks.run(quern, 3, *words, "--quiet", cwd=tmp_path)
    assert recipes.sha256(tmp_path / "m") == of_table


def test_what_cannot_be_in_parts(quern, run_quern, tables, tmp_path):
    table = tables / "p0.csv"
    for words, says in [(["--data", table, "--data-parts", table], "--data contradicts --data-parts"),
                        (["--data", table, "--part-cache", "9"], "--part-cache needs --data-parts")]:
        assert says in run_quern("train", *words, "-o", tmp_path / "m", status=2).stderr
    done = run_quern("train", "--data-parts", table, *TABLE, "-o", tmp_path / "m")
    assert "(null)" not in done.stderr  # a process alone has nothing to say of parts


def test_items_too_large_for_parts(quern, tmp_path):
    numpy.save(tmp_path / "two.npy", numpy.array([0, 1]))
    numpy.save(tmp_path / "large.npy", numpy.zeros((2, (4 << 20) + 1), "uint8"))
    done = ranks.run(quern, 2, "train", "--data-parts", tmp_path / "large.npy", "--labels", tmp_path / "two.npy",
                     "--part-cache", "4", "-o", tmp_path / "m", status=None)
    assert "items of more than 4 MiB cannot be in parts" in "".join(err for _, _, err in done)
