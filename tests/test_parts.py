"""Data in parts (--data-parts): what ranks find together is what one process finds in all files."""

import json
import re

import pytest

import ranks

np = pytest.importorskip("numpy")


def table(path, rows, seed=0, label=lambda i: i % 3, city=lambda i: "ABC"[i % 3], real=True):
    """A CSV file: a label, a category, small whole numbers with gaps, and real numbers."""
    draw = np.random.default_rng(seed)
    size, count = draw.normal(size=rows).astype(np.float32), draw.integers(0, 300, rows)
    lines = ["y,city,count,size"] if real else ["y,count"]
    for i in range(rows):
        number = "" if i % 7 == 3 else str(count[i])
        lines.append(f"{label(i)},{city(i)},{number},{size[i]}" if real else f"{label(i)},{count[i] % 256}")
    path.write_text("\n".join(lines) + "\n")
    return path


def stats(done):
    found = json.loads(done)
    del found["file"]
    return found


def given(files):
    return [word for file in files for word in ("--data-parts", file)]


def together(quern, run_quern, folder, whole, parts, *more, count=None):
    """The statistics of ranks, each with its list in `parts`, or all with the one list; equal to those of one
    process that reads the files of `whole`."""
    words = ["data", "stats", "--json", *more]
    want = stats(run_quern(*words, *whole, cwd=folder).stdout)
    if count:
        done = ranks.run(quern, count, *words, *given(parts), cwd=folder)
    else:
        own = {k: given(part) for k, part in enumerate(parts)}
        done = ranks.run(quern, len(parts), *words, own=own, cwd=folder)
    assert stats(done[0][1]) == want
    assert all((out, err) == ("", "") for _, out, err in done[1:])
    return want


ALL = ["--by-class", "--histograms", "--correlation", "--quantiles", "0,0.1,0.5,0.77,1", "--label", "y"]


@pytest.mark.parametrize("count", [2, 4])
def test_files_are_dealt(quern, run_quern, tmp_path, count):
    """Of three files, one is empty but for its header of columns; with four ranks some have none."""
    whole = [table(tmp_path / f"{k}.csv", rows, k).name for k, rows in enumerate([500, 40, 71])]
    if count == 4:  # what `data info` says, in its own words
        want = run_quern("data", "info", *whole, "--label", "size", cwd=tmp_path).stdout
        done = ranks.run(quern, 4, "data", "info", *given(whole), "--label", "size", cwd=tmp_path)
        assert [out for _, out, _ in done] == [want, "", "", ""] and "from -" in want
        want = json.loads(run_quern("data", "info", *whole, "--json", cwd=tmp_path).stdout)
        told = json.loads(ranks.run(quern, 2, "data", "info", *given(whole), "--json", cwd=tmp_path)[0][1])
        assert {**told, "note": want["note"]} == want and want["counts"] == [205, 204, 202]
    found = together(quern, run_quern, tmp_path, whole, whole, *ALL, count=count)
    assert found["items"] == 611 and found["columns"][0]["type"] == "category"


def test_parts_that_differ(quern, run_quern, tmp_path):
    """Each rank names its own files: other categories, classes with gaps in one part, bytes in one and floats in
    another, columns in another order, one without values, one without rows, and a rank that is alone in having
    real labels."""
    table(tmp_path / "a.csv", 30, 1, label=lambda i: 7, city=lambda i: "Zug")
    table(tmp_path / "b.csv", 200, 2, label=lambda i: i % 9, city=lambda i: f"c{i % 11}")
    (tmp_path / "c.csv").write_text("size,city,y,count\n,Bern,3,1\n,Zug,4,2\n")
    (tmp_path / "names.csv").write_text("y,city,count,size\n")
    files = ["names.csv", "a.csv", "b.csv", "c.csv"]
    found = together(quern, run_quern, tmp_path, files, [[name] for name in files], *ALL)
    assert found["class_names"] == []
    table(tmp_path / "d.csv", 9, 3, label=lambda i: i + 0.5, city=lambda i: "Zug")
    found = together(quern, run_quern, tmp_path, ["a.csv", "d.csv", "b.csv"], [["a.csv"], ["d.csv", "b.csv"]],
                     "--label", "y")
    assert found["columns"][-1]["mean"] > 3
    (tmp_path / "real.csv").write_text("y,count\n0.5,1\n-3.25,255\n1.75,3\n-0.25,0\n")
    together(quern, run_quern, tmp_path, ["real.csv"], [["real.csv"], ["real.csv"]], "--label", "y", "--histograms")
    (tmp_path / "e.csv").write_text("y,count\n40,1\n50,255\n")
    table(tmp_path / "f.csv", 70, 4, real=False, label=lambda i: f"n{i % 5}")
    (tmp_path / "g.csv").write_text("y,count\nn9,1\nn8,2.5\nn7,-3\n")
    found = together(quern, run_quern, tmp_path, ["e.csv", "f.csv", "g.csv"], [["e.csv"], ["f.csv"], ["g.csv"]], *ALL)
    assert found["class_names"] == ["40", "50", "n0", "n1", "n2", "n3", "n4", "n7", "n8", "n9"]


def test_arrays_and_types(quern, run_quern, tmp_path):
    """The digest is that of blocks of 1 MiB, whose borders lie in the middle of parts; labels have files."""
    draw = np.random.default_rng(5)
    for k, rows in enumerate([9000, 3, 26000]):
        np.save(tmp_path / f"x{k}.npy", draw.integers(0, 256, (rows, 100), np.uint8))
        np.save(tmp_path / f"y{k}.npy", draw.integers(0, 4, rows, np.uint8))
        run_quern("data", "convert", table(tmp_path / f"{k}.csv", 20 + k, k), "-o", tmp_path / f"{k}.parquet",
                  "--label", "y")
    np.save(tmp_path / "x3.npy", np.zeros((0, 100), np.uint8))
    np.save(tmp_path / "y3.npy", np.zeros(0, np.uint8))
    whole = ["x3.npy", "x0.npy", "x1.npy", "x2.npy"]
    labels = [word for k in (3, 0, 1, 2) for word in ("--labels", f"y{k}.npy")]
    together(quern, run_quern, tmp_path, whole, whole, *labels, count=2)
    whole = ["0.parquet", "1.parquet", "2.parquet"]
    together(quern, run_quern, tmp_path, whole, whole, "--label", "y", count=3)


def test_parts_that_are_not_one_table(quern, run_quern, tmp_path):
    assert "do not share" in run_quern("data", "stats", "--data-parts", "-", status=2).stderr
    table(tmp_path / "a.csv", 20, 1)
    (tmp_path / "b.csv").write_text("y,town,count,size\n1,A,2,3.5\n")
    (tmp_path / "c.csv").write_text("y,city,count,size\n1,A,many,3.5\n")
    (tmp_path / "d.csv").write_text("y,city,count,size\n1,A,2,123456789\n")
    for other, *said in [("b", 'the name of column "city", which is "town" there, differs', "rank 1 on "),
                         ("c", 'the type of column "count" differs', "--category"),
                         ("d", 'column "size" holds numbers that float32 cannot hold', "--drop"),
                         ("e", "e.csv", "rank 1 on ")]:
        done = ranks.run(quern, 2, "data", "stats", cwd=tmp_path, status=1,
                         own={0: ["--data-parts", "a.csv"], 1: ["--data-parts", f"{other}.csv"]})
        assert all(text in done[0][2] for text in said), done[0][2]
    own = {0: given(["a.csv", "b.csv"]), 1: given(["b.csv", "a.csv"])}  # not 42 rows
    done = ranks.run(quern, 2, "data", "stats", cwd=tmp_path, status=1, own=own)
    assert "the same files in different orders" in done[0][2]
    for data, option, *values in [("--data-parts", "--task", "classify", "regress"), ("--data", "--label", "y", "size"),
                                  ("--data-parts", "--drop", "y", "city")]:
        own = {rank: [data, "a.csv", option, value] for rank, value in enumerate(values)}
        command = ["data", "stats"] if option == "--task" else ["train", "-o", "m"]
        done = ranks.run(quern, 2, *command, cwd=tmp_path, status=1, own=own)
        said = f"rank 1 on vm differs from rank 0 on vm in {option}: {values[1]}, not {values[0]}"
        assert said == re.sub("rank (.) on [^ ]+", r"rank \1 on vm", done[0][2].splitlines()[0].split(": ", 1)[1])


@pytest.mark.parametrize("words", ["kmeans --set clusters=3 --drop y", "pca --drop y", "ridge --label y",
                                   "lasso --label y"])
def test_models_of_sums(quern, run_quern, tmp_path, words):
    """Their files are those of one process."""
    draw = np.random.default_rng(8)
    for name, rows in ("a", 300), ("b", 90):
        lines = [",".join(map(str, row)) for row in draw.normal(size=(rows, 3)).astype(np.float32)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["y,u,v", *lines]) + "\n")
    words = ["fit", *words.split(), "--quiet"]
    run_quern(*words, "--data", "a.csv", "--data", "b.csv", "-o", "one.st", cwd=tmp_path)
    ranks.run(quern, 3, *words, *given(["a.csv", "b.csv"]), "-o", "parts.st", cwd=tmp_path)
    assert (tmp_path / "parts.st").read_bytes() == (tmp_path / "one.st").read_bytes()
