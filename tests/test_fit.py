"""quern fit: models by sums as files, beside the oracle and scikit-learn; their application by name."""

import csv
import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import sum_models  # noqa: E402

FITS = {"kmeans": ("clusters=3 seed=5 starts=2", {"clusters": 3, "seed": 5, "starts": 2}),
        "pca": ("components=2", {"components": 2}),
        "ridge": ("alpha=0.3", {"alpha": 0.3}),
        "lasso": ("alpha=0.02, intercept=0", {"alpha": 0.02, "intercept": 0})}
LABELLED = ("ridge", "lasso")


def run(quern, *words, status=0, **more):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A folder with a table, itself in another order of columns with more, and the numbers."""
    folder, draw = tmp_path_factory.mktemp("fit"), random.Random(4)
    rows = []
    for k in range(300):
        x = [float(np.float32(draw.gauss(4 * (k % 3) * s, 1))) for s in (1, -1, 0)]
        rows.append([*x, float(np.float32(2 * x[0] - x[1] + draw.gauss(0, 0.1)))])
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["u", "v", "w, x", "price"], *rows])
    with open(folder / "other.csv", "w", newline="") as file:
        csv.writer(file).writerows([["who", "w, x", "u", "v"], *([f"n{k}", r[2], r[0], r[1]] for k, r in enumerate(rows))])
    return folder, rows


@pytest.fixture(scope="module")
def models(quern, table):
    folder = table[0]
    for kind, (parameters, _) in FITS.items():
        run(quern, "fit", kind, "--data", folder / "t.csv", "--set", parameters, "-o", folder / f"{kind}.st",
            *(("--label", "price") if kind in LABELLED else ("--drop", "price")))
    return folder


def recipe_of(path):
    content = path.read_bytes()
    header = json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"]["recipe"])


def predictions(quern, model, data, *more):
    lines = list(csv.reader(run(quern, "predict", model, "--data", data, "--outputs", *more).stdout.splitlines()))
    return lines[0], lines[1:]


@pytest.mark.parametrize("kind", FITS)
def test_files_and_predictions_are_the_oracles(quern, table, models, kind):
    folder, rows = table
    items, path = [row[:3] for row in rows], models / f"{kind}.st"
    parameters, tensors = sum_models.fit(kind, items, [row[3] for row in rows], FITS[kind][1])
    labelled = kind in LABELLED
    names = {"label": "price" if labelled else None, "target": "real" if labelled else "none", "classes": [],
             "features": ["u", "v", "w, x"]}
    assert path.read_bytes() == sum_models.file_bytes(kind, parameters, tensors, recipe_of(path)["data"], 300, names)
    wanted = sum_models.predict(kind, tensors, items)
    head, found = predictions(quern, path, folder / "other.csv")
    named = {"kmeans": ["item", "prediction", "score", "kmeans0", "kmeans1", "kmeans2"], "pca": ["item", "pca0", "pca1"]}
    assert head == named.get(kind, ["item", "prediction"])
    for k, (line, (prediction, score, outputs)) in enumerate(zip(found, wanted, strict=True)):
        numbers = [n for n in (prediction, score, *(outputs or ())) if n is not None]
        assert line[0] == str(k) and [np.float32(cell) for cell in line[1:]] == list(map(np.float32, numbers))


def test_threads_devices_ranks_and_formats_change_no_byte(quern, table, models, tmp_path):
    folder = table[0]
    run(quern, "data", "convert", folder / "t.csv", "--unlabelled", "-o", tmp_path / "t.parquet")
    for kind, (parameters, _) in FITS.items():
        run(quern, "fit", kind, "--data", tmp_path / "t.parquet", "--set", parameters, "--threads", 1, "-o",
            tmp_path / kind, *(("--label", "price") if kind in LABELLED else ("--drop", "price")))
        assert (tmp_path / kind).read_bytes() == (models / f"{kind}.st").read_bytes()
        assert (predictions(quern, tmp_path / kind, folder / "other.csv", "--threads", 1, "--isa", "scalar")
                == predictions(quern, models / f"{kind}.st", folder / "other.csv", "--threads", 3))
        said = run(quern, "replay", models / f"{kind}.st", "--data", folder / "t.csv").stdout
        assert said.startswith("replay: identical, ")


def test_evaluate_show_and_messages(quern, table, models, tmp_path):
    folder = table[0]
    summary = json.loads(run(quern, "fit", "kmeans", "--data", folder / "t.csv", "--drop", "price", "--set",
                             FITS["kmeans"][0], "--json", "-o", tmp_path / "k").stdout)
    judged = json.loads(run(quern, "evaluate", models / "kmeans.st", "--data", folder / "t.csv", "--json").stdout)
    assert judged["evaluation"] == {"items": 300, "weighted": False, "clusters": 3, "inertia": summary["inertia"]}
    assert "R2 0.99" in run(quern, "evaluate", models / "ridge.st", "--data", folder / "t.csv").stdout
    for kind, title in (("kmeans", "a k-means model"), ("pca", "a PCA model"), ("ridge", "a linear model (Ridge)")):
        shown = run(quern, "model", "show", models / f"{kind}.st").stdout
        assert shown.startswith(title) and "w, x" in shown and recipe_of(models / f"{kind}.st")["data"] in shown
        assert json.loads(run(quern, "model", "show", models / f"{kind}.st", "--json").stdout)["kind"] == kind
        error = run(quern, "model", "export", models / f"{kind}.st", "-o", tmp_path / "x", status=1).stderr
        assert f"an ONNX file needs a network, and this is {title}" in error
        error = run(quern, "train", "--data", folder / "t.csv", "--label", "price", "--init-from",
                    models / f"{kind}.st", "-o", tmp_path / "x", status=1).stderr
        assert f"needs a network, and this is {title}" in error
    assert "clusters" in run(quern, "fit", "kmeans", "--list").stdout
    (tmp_path / "text.csv").write_text("u,v,\"w, x\"\n1,2,a\n2,3,b\n")
    (tmp_path / "few.csv").write_text("u,v\n1,2\n2,3\n")
    (tmp_path / "gap.csv").write_text("u,v,\"w, x\"\n1,2,3\n2,,4\n")
    (tmp_path / "large.csv").write_text("u,v,\"w, x\"\n1,2,3\n3e38,-3e38,3e38\n")
    for words, said in (
            (("evaluate", models / "pca.st", "--data", folder / "t.csv"), "a PCA model predicts no labels"),
            (("predict", models / "kmeans.st", "--data", tmp_path / "text.csv"), 'column "w, x" has categories, where'),
            (("predict", models / "pca.st", "--data", tmp_path / "few.csv"), "w, x"),
            (("predict", models / "ridge.st", "--data", tmp_path / "gap.csv", "--unlabelled"), 'column "v" has 1 missing value'),
            (("replay", models / "ridge.st", "--data", folder / "other.csv"), "not the data that the model"),
            (("replay", models / "pca.st", "--data", tmp_path / "gap.csv"), "not the data that the model was fitted to"),
            (("replay", models / "pca.st"), "needs its data"),
            (("fit", "trees", "--data", folder / "t.csv", "-o", tmp_path / "x"), "name one of these: kmeans, pca, ridge, lasso"),
            (("fit", "kmeans", "--data", folder / "t.csv", "--label", "price", "-o", tmp_path / "x"), "--drop"),
            (("fit", "kmeans", "--data", folder / "other.csv", "-o", tmp_path / "x"), "categories"),
            (("fit", "pca", "--data", tmp_path / "gap.csv", "-o", tmp_path / "x"), 'column "v" lacks 1 values'),
            (("fit", "kmeans", "--data", folder / "t.csv", "--set", "clusters", "-o", tmp_path / "x"), 'clusters cannot be ""\n  at --set\n'),
            (("fit", "kmeans", "--data", tmp_path / "few.csv", "--set", "clusters=3", "-o", tmp_path / "x"), "as many clusters as items"),
            (("fit", "pca", "--data", tmp_path / "few.csv", "--set", "components=3", "-o", tmp_path / "x"), "at most as many"),
            (("fit", "ridge", "--data", folder / "t.csv", "--label", "price", "--set", "alpha=-1", "-o", tmp_path / "x"), "a number from 0"),
            (("fit", "ridge", "--data", folder / "t.csv", "--label", "price", "--set", "alpha=1 alpha=2", "-o", tmp_path / "x"), "twice"),
            (("fit", "ridge", "--data", folder / "t.csv", "--label", "price", "--set", "beta=1", "-o", tmp_path / "x"), "alpha, intercept")):
        done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2) and said in done.stderr, (words, done.stderr)
    assert not (tmp_path / "x").exists()


def test_wide_columns_count_as_floats(quern, tmp_path):
    """A replay finds the data also where exact numbers lie beside the floats, in any order of columns."""
    rows = [(k * k % 11 + 0.5, 2 ** 53 + k, k) for k in range(20)]
    for name, order in (("t.csv", (0, 1, 2)), ("other.csv", (0, 2, 1))):
        with open(tmp_path / name, "w", newline="") as file:
            csv.writer(file).writerows([[("y", "a", "b")[k] for k in order], *([r[k] for k in order] for r in rows)])
    for kind in ("pca", "ridge"):
        run(quern, "fit", kind, "--data", tmp_path / "t.csv", "-o", tmp_path / "m.st",
            *(("--label", "y") if kind == "ridge" else ()))
        for name in ("t.csv", "other.csv"):
            assert "identical" in run(quern, "replay", tmp_path / "m.st", "--data", tmp_path / name).stdout


def remade(header, body):
    text = json.dumps(header, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + body


def test_damaged_files_are_refused(quern, models, table, tmp_path):
    """Each part of a file that says something else; and bytes at random."""
    content = (models / "kmeans.st").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8:8 + size]), content[8 + size:]
    recipe = json.loads(header["__metadata__"]["recipe"])

    def with_recipe(**more):
        text = json.dumps({**recipe, **more}, separators=(",", ":"))
        return remade({**header, "__metadata__": {**header["__metadata__"], "recipe": text}}, body)

    def with_tensor(**more):
        return remade({**header, "centres": {**header["centres"], **more}}, body)

    renamed = {"__metadata__": header["__metadata__"], "center": header["centres"]}
    notes = header["__metadata__"]
    cases = [(with_recipe(parameters="clusters=4 iterations=300 tolerance=0.0001 seed=5 starts=2"), "not those of the recipe"),
             (with_recipe(parameters="clusters=3"), "not written the way"), (with_recipe(parameters=7), "not a string"),
             (with_recipe(features=2), "columns are not those"), (with_recipe(items=0), "whole number"),
             (with_recipe(kind="pca"), "not written the way"), (with_recipe(contract=8), "newer version"),
             (with_recipe(data="00"), "digest"), (with_recipe(rules="x"), "key \"rules\""), (with_recipe(more=1), "not written the way"),
             (with_recipe(table={**recipe["table"], "features": ["u", "v", {"name": "w", "categories": ["a"]}]}), "columns are not those"),
             (with_recipe(table=3), "key \"table\""), (with_tensor(dtype="F32"), "offsets do not fit"),
             (with_tensor(shape=[9]), "another shape"), (remade(renamed, body), "is missing"),
             (remade({**header, "__metadata__": {**notes, "format": "quern-pca-1"}}, body), "recipe"),
             (remade({**header, "__metadata__": {**notes, "format": "quern-kmeans-2"}}, body), "newer version"),
             (remade({**header, "__metadata__": {**notes, "format": "quern-trees-1"}}, body), "a kind that this version lacks"),
             (remade({**header, "__metadata__": {**notes, "format": "quern-model-1"}}, body), "recipe"),
             (remade({**header, "__metadata__": {"format": notes["format"]}}, body), "no recipe"),
             (remade(header, struct.pack("<d", float("nan")) + body[8:]), "NaN"),
             (content[:-1], "file"), (content[:40], "file")]
    draw, path = random.Random(1), tmp_path / "m.st"
    for content_of, said in cases:
        path.write_bytes(content_of)
        done = run(quern, "predict", path, "--data", table[0] / "t.csv", status=1)
        assert said in done.stderr and "m.st" in done.stderr, (said, done.stderr)
    for k in range(12):  # a bit of the header, which may be one of the digest of the data
        place = draw.randrange(len(content) - len(body))
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << draw.randrange(7)]) + content[place + 1:])
        done = subprocess.run([quern, "predict", path, "--data", table[0] / "t.csv"], capture_output=True, timeout=60)
        assert done.returncode in (0, 1) and b"m.st" in done.stderr + (not done.returncode) * b"m.st", done.stderr


def test_scikit_learn_agrees(quern, table, models):
    decomposition = pytest.importorskip("sklearn.decomposition")
    from sklearn.linear_model import Lasso, Ridge

    folder, rows = table
    X, y = np.array(rows)[:, :3], np.array(rows)[:, 3]
    _, found = predictions(quern, models / "pca.st", folder / "other.csv")
    ours, theirs = np.array(found, float)[:, 1:], decomposition.PCA(2).fit_transform(X)
    assert np.abs(np.abs(ours) - np.abs(theirs)).max() < 1e-5
    for kind, other in (("ridge", Ridge(0.3)), ("lasso", Lasso(0.02, fit_intercept=False))):
        _, found = predictions(quern, models / f"{kind}.st", folder / "other.csv")
        assert np.abs(np.array(found, float)[:, 1] - other.fit(X, y).predict(X)).max() < 2e-3
