"""Data in parts (--data-parts) of predict and evaluate: each rank predicts its own rows and writes its own file. The
files are one after the other what one process writes, and the measures are those that it finds."""

import json

import numpy
import pytest

import ranks
import test_parts


@pytest.fixture(scope="module")
def folder(quern, run_quern, tmp_path_factory):
    """Three files, and models of classes and of clusters."""
    folder = tmp_path_factory.mktemp("predict")
    for k, (rows, city) in enumerate([(90, "ABC"), (7, "D"), (140, "BAE")]):
        test_parts.table(folder / f"p{k}.csv", rows, k, label=lambda i: "low mid high".split()[i % (2 + k % 2)],
                         city=lambda i, of=city: of[i % len(of)])
    run_quern("train", "--data", "p0.csv", "--data", "p2.csv", "--model", "dense 6 relu; dense 3 softmax", "--epochs", "2",
              "--missing", "drop", "--quiet", "-o", "classes", cwd=folder)
    run_quern("fit", "kmeans", "--set", "clusters=3", "--drop", "y,city,count", "--data", "p0.csv", "--quiet", "-o",
              "kmeans", cwd=folder)
    return folder


WHOLE = [word for k in range(3) for word in ("--data", f"p{k}.csv")]
PARTS = [word for k in range(3) for word in ("--data-parts", f"p{k}.csv")]


def summary(line):
    found = json.loads(line)
    return {key: found[key] for key in found if key not in ("seconds", "file", "data")}


@pytest.mark.parametrize("model, more", [("classes", ["--label", "y", "--top", "2"]), ("kmeans", ["--outputs"])])
def test_predictions(quern, run_quern, folder, model, more):
    """Of four ranks one has no rows."""
    want = run_quern("predict", model, *WHOLE, *more, "--json", "-o", "one.csv", cwd=folder).stdout
    done = ranks.run(quern, 4, "predict", model, *PARTS, *more, "--json", "-o", "%r.csv", cwd=folder)
    assert summary(done[0][1]) == summary(want) and summary(want)["items"] == 237
    assert [out for _, out, _ in done[1:]] == [""] * 3
    written = [(folder / f"{rank}.csv").read_text().splitlines() for rank in range(4)]
    assert sorted(map(len, written)) == [1, 8, 91, 141]
    assert [written[0][0], *(line for lines in written for line in lines[1:])] == \
        (folder / "one.csv").read_text().splitlines()


def test_evaluation(quern, run_quern, folder):
    want = run_quern("evaluate", "classes", *WHOLE, "--label", "y", "--verbose", cwd=folder).stdout
    own = {k: ["--data-parts", f"p{k}.csv"] for k in range(3)}
    done = ranks.run(quern, 3, "evaluate", "classes", "--label", "y", "--verbose", cwd=folder, own=own)
    assert [out for _, out, _ in done] == [want, "", ""]


def test_outputs_of_a_layer(quern, run_quern, folder):
    """The rank without rows writes no file."""
    words = ["--label", "y", "--layer", "0"]
    run_quern("predict", "classes", *WHOLE, *words, "-o", "one.npy", "--output-labels", "l.npy", cwd=folder)
    done = ranks.run(quern, 4, "predict", "classes", *PARTS, *words, "-o", "v%r.npy", "--output-labels", "l%r.npy",
                     cwd=folder)
    assert "for 237 items in v%r.npy, 6 each" in done[0][1] and [out for _, out, _ in done[1:]] == [""] * 3
    for name, whole in ("v", "one"), ("l", "l"):
        written = [numpy.load(path) for path in sorted(folder.glob(f"{name}[0-3].npy"))]
        assert len(written) == 3
        numpy.testing.assert_array_equal(numpy.concatenate(written), numpy.load(folder / f"{whole}.npy"))
    assert "--output-labels needs %r" in run_quern("predict", "classes", *PARTS, *words, "-o", "v%r.npy",
                                                   "--output-labels", "l.npy", cwd=folder, status=2).stderr


def test_refused(quern, run_quern, folder):
    assert "-o needs %r" in run_quern("predict", "classes", *PARTS, cwd=folder, status=2).stderr
    (folder / "bad.csv").write_text("y,city,count,size\nlow,A,1,many\n")
    own = {0: ["--data-parts", "p0.csv"], 1: ["--data-parts", "bad.csv"]}
    done = ranks.run(quern, 2, "evaluate", "classes", "--label", "y", cwd=folder, own=own, status=1)
    assert "rank 1 on " in done[0][2]


def test_images_have_names(quern, run_quern, tmp_path):
    """Two images and three ranks: the rank without any writes the same line of names."""
    image = pytest.importorskip("PIL.Image")
    for k, name in enumerate(["a", "b"]):
        (tmp_path / "all" / name).mkdir(parents=True)
        image.new("L", (8, 8), 90 * k).save(tmp_path / "all" / name / f"{k}.png")
    run_quern("train", "--data", "all", "--model", "dense 2 softmax", "--epochs", "1", "--quiet", "-o", "m", cwd=tmp_path)
    ranks.run(quern, 3, "predict", "m", "--data-parts", "all", "--quiet", "-o", "%r.csv", cwd=tmp_path)
    written = [(tmp_path / f"{rank}.csv").read_text().splitlines() for rank in range(3)]
    assert [lines[0] for lines in written] == ["item,file,label,prediction,score"] * 3
    assert sorted(line[:10] for lines in written for line in lines[1:]) == ["0,a/0.png,", "1,b/1.png,"]
