"""Names of columns and classes: kept in models, and matched wherever a model meets a table."""

import csv
import json
import random

import pytest

import ranks

COLUMNS = ["size", "weight, kg", 'the "age"', "\u00fcber"]
KINDS = ["cat", "dog", "Emu"]


def rows(count, seed=1, kinds=KINDS):
    """Items whose first columns tell the kind."""
    draw = random.Random(seed)
    made = []
    for i in range(count):
        kind = i % len(kinds)
        cells = [f"{draw.gauss(3 * (kind == k), 1):.3f}" for k in range(len(COLUMNS))]
        made.append({**dict(zip(COLUMNS, cells)), "kind": kinds[kind]})
    return made


def write(path, items, columns):
    with open(path, "w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, columns, extrasaction="ignore", restval="7")
        table.writeheader()
        table.writerows(items)
    return path


TRAIN = ["--label", "kind", "--model", "dense 9 tanh; dense 3 softmax", "--epochs", "5", "--seed", "2"]
TURNED = ["kind", COLUMNS[3], COLUMNS[1], COLUMNS[0], COLUMNS[2]]


@pytest.fixture(scope="module")
def made(quern, tmp_path_factory):
    """A table, the same items with columns in another order, and a model of it."""
    import subprocess
    folder = tmp_path_factory.mktemp("names")
    plain = write(folder / "plain.csv", rows(90), [*COLUMNS, "kind"])
    turned = write(folder / "turned.csv", rows(90), TURNED)
    model = folder / "m.safetensors"
    subprocess.run([quern, "train", "--data", plain, *TRAIN, "-o", model, "--quiet"], check=True)
    return folder, plain, turned, model


def recipe_of(model):
    header = model.read_bytes()
    return json.loads(json.loads(header[8:8 + int.from_bytes(header[:8], "little")])["__metadata__"]["recipe"])


def test_the_model_holds_the_names(made):
    recipe = recipe_of(made[3])
    assert recipe["contract"] == 2
    assert recipe["table"] == {"label": "kind", "target": "class", "classes": sorted(KINDS),
                               "features": COLUMNS}


def predictions(text):
    return list(csv.DictReader(text.splitlines()))


def test_predict_in_any_order(made, run_quern):
    """The label is found by its name too: --label need not be said again."""
    folder, plain, turned, model = made
    one, two = (run_quern("predict", model, "--data", data, "--outputs") for data in (plain, turned))
    assert one.stdout == two.stdout and "accuracy" in one.stderr
    told = predictions(one.stdout)
    assert [r["label"] for r in told] == [r["kind"] for r in rows(90)]
    assert {r["prediction"] for r in told} == set(KINDS)
    for r in told:  # outputs are in the order of the classes
        outputs = [float(r[f"p{j}"]) for j in range(3)]
        assert sorted(KINDS)[outputs.index(max(outputs))] == r["prediction"]


def test_predict_without_labels(made, run_quern, tmp_path):
    """A header without the label's name: no labels, and no need to say so."""
    folder, plain, turned, model = made
    bare = write(tmp_path / "bare.csv", rows(90), list(reversed(COLUMNS)))
    done = run_quern("predict", model, "--data", bare)
    assert done.stdout.startswith("item,prediction,score\n") and "accuracy" not in done.stderr
    labelled = run_quern("predict", model, "--data", plain)
    assert [r["prediction"] for r in predictions(done.stdout)] == [
        r["prediction"] for r in predictions(labelled.stdout)]


def test_missing_and_strange_columns(made, run_quern, tmp_path):
    model = made[3]
    short = write(tmp_path / "short.csv", rows(9), ["Size", *COLUMNS[1:3], "kind"])
    done = run_quern("predict", model, "--data", short, status=1)
    assert 'lacks the columns "size", "\u00fcber" of the model' in done.stderr
    assert 'it has "Size"' in done.stderr and "header" in done.stderr and done.stdout == ""
    wide = write(tmp_path / "wide.csv", rows(9), ["id", *COLUMNS, "kind"])
    done = run_quern("predict", model, "--data", wide)
    assert '1 column that the model does not use: "id"' in done.stderr
    same = run_quern("predict", model, "--data", write(tmp_path / "n.csv", rows(9), [*COLUMNS, "kind"]))
    assert done.stdout == same.stdout


def test_labels_never_seen(made, run_quern, tmp_path):
    model = made[3]
    other = write(tmp_path / "o.csv", rows(9, kinds=["cat", "yak", "dog"]), [*COLUMNS, "kind"])
    done = run_quern("predict", model, "--data", other)
    assert 'not trained on count as wrong: "yak" (3 of 9 items)' in done.stderr
    told = predictions(done.stdout)
    assert [r["label"] for r in told] == ["cat", "yak", "dog"] * 3
    right = sum(r["label"] == r["prediction"] for r in told)
    assert f"({right} of 9)" in done.stderr


def test_test_set_in_another_order(made, run_quern, tmp_path):
    folder, plain, turned, model = made
    ends = []
    for test in (plain, turned):
        done = run_quern("train", "--data", plain, *TRAIN, "--test", test, "--json", "-o",
                         tmp_path / "m", "--threads", "1")
        ends.append(json.loads(done.stdout.splitlines()[-1]))
    assert ends[0]["class_names"] == sorted(KINDS)
    assert ends[0]["confusion"] == ends[1]["confusion"] and ends[0]["loss"] == ends[1]["loss"]
    assert ends[0]["digest"] == ends[1]["digest"]
    # A part of the classes, and labels that are named otherwise.
    few = write(tmp_path / "few.csv", [r for r in rows(90) if r["kind"] == "dog"], TURNED)
    done = run_quern("train", "--data", plain, *TRAIN, "--test", few, "-o", tmp_path / "m")
    assert " Emu" in done.stdout and "of 30)" in done.stdout
    strange = write(tmp_path / "s.csv", rows(9, kinds=["cat", "yak"]), TURNED)
    done = run_quern("train", "--data", plain, *TRAIN, "--test", strange, "-o", tmp_path / "m", status=1)
    assert 'the test set has labels that the model is not trained on: "yak"' in done.stderr
    unnamed = write(tmp_path / "u.csv", rows(9), COLUMNS)
    done = run_quern("train", "--data", plain, *TRAIN[2:], "--label", "last", "--test", unnamed,
                     "-o", tmp_path / "m", status=1)
    assert "lacks the column" in done.stderr


def test_replay_in_any_order(made, run_quern):
    folder, plain, turned, model = made
    for data in (plain, turned):
        assert "replay: identical" in run_quern("replay", model, "--data", data).stdout


def test_replay_of_a_model_without_names(run_quern, tmp_path):
    """As models of contract 1 are, whatever names their data had."""
    items = [{**r, "kind": KINDS.index(r["kind"])} for r in rows(60)]
    named = write(tmp_path / "named.csv", items, [*COLUMNS, "kind"])
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(named.read_text().splitlines(keepends=True)[1:]))
    model = tmp_path / "m"
    run_quern("train", "--data", bare, "--label", "last", *TRAIN[2:], "-o", model)
    assert recipe_of(model)["contract"] == 1
    for data in (bare, named):
        done = run_quern("replay", model, "--data", data, "--label", "last")
        assert "replay: identical" in done.stdout


def test_ranks(made, quern, run_quern, tmp_path):
    """The shared table carries the names."""
    folder, plain, turned, model = made
    more = ["train", "--data", plain, *TRAIN, "--test", turned, "--quiet", "-o", tmp_path / "m"]
    ranks.run(quern, 2, *more)
    assert (tmp_path / "m").read_bytes() == model.read_bytes()
    ranks.run(quern, 2, *more, "--data-from-rank0")
    assert (tmp_path / "m").read_bytes() == model.read_bytes()
    ranks.run(quern, 2, "predict", model, "--data", turned, "-o", tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == run_quern("predict", model, "--data", plain).stdout


def test_resume(made, run_quern, tmp_path):
    folder, plain, turned, model = made
    out, points = tmp_path / "m", tmp_path / "points"
    run_quern("train", "--data", plain, *TRAIN, "-o", out, "--checkpoint", points)
    run_quern("train", "--data", plain, *TRAIN, "-o", out, "--checkpoint", points, "--resume")
    assert out.read_bytes() == model.read_bytes()
    renamed = write(tmp_path / "r.csv", [{**r, "SIZE": r["size"]} for r in rows(90)],
                    ["SIZE", *COLUMNS[1:], "kind"])
    done = run_quern("train", "--data", renamed, *TRAIN, "-o", out, "--checkpoint", points, "--resume",
                     status=1)
    assert 'table column 0 "size" and column 0 "SIZE"' in done.stderr


def test_bytes_beside_columns_of_others(quern, run_quern, tmp_path):
    """A column that the model does not have makes no floats of its bytes: not in a prediction, a
    validation or a replay, and not among ranks."""
    draw = random.Random(3)
    items = [{"a": draw.randrange(256), "b": draw.randrange(256), "y": i % 2, "z": draw.random(),
              "city": draw.choice(["Bern", "Ulm"])} for i in range(60)]
    bytes_, wide = (write(tmp_path / name, items, columns) for name, columns in
                    [("bytes.csv", ["y", "a", "b"]), ("wide.csv", ["z", "b", "city", "y", "a"])])
    words = ["--label", "y", "--scale", "unit", "--model", "dense 3 tanh; dense 2 softmax",
             "--epochs", "3", "--keep", "best", "--quiet"]
    models = [tmp_path / "m", tmp_path / "w", tmp_path / "r"]
    for model, valid in zip(models, (bytes_, wide)):
        run_quern("train", "--data", bytes_, *words, "--valid", valid, "--test", wide, "-o", model)
    ranks.run(quern, 2, "train", "--data", bytes_, *words, "--valid", wide, "-o", models[2],
              "--data-from-rank0")
    assert len({model.read_bytes() for model in models}) == 1
    done = run_quern("replay", models[0], "--data", wide, "--valid", wide)
    assert "replay: identical" in done.stdout
    one, two = (run_quern("predict", models[0], "--data", data).stdout for data in (bytes_, wide))
    assert one == two


@pytest.mark.parametrize("cell", ["5.0", "+5", "-0", "256", ""])
def test_what_is_no_byte(cell, run_quern, tmp_path):
    """As it is written, and not as what it is worth."""
    lines = [f"{k % 2},{k},{k * 3 % 7}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["y,a,b", *lines]) + "\n")
    lines[7] = f"1,{cell},3"
    (tmp_path / "v.csv").write_text("\n".join(["y,a,b,x", *(f"{line},1.5" for line in lines)]) + "\n")
    done = run_quern("train", "--data", tmp_path / "t.csv", "--valid", tmp_path / "v.csv", "--scale",
                     "unit", "--model", "dense 2 softmax", "--epochs", "1", "-o", tmp_path / "m",
                     status=1)
    assert "bytes" in done.stderr


def test_a_wide_table(quern, run_quern, tmp_path):
    """Names that fill more than ranks send to compare, and more than a small header."""
    wide = tmp_path / "wide.csv"
    names = [f"measurement number {k} of the series" for k in range(30000)]
    lines = [[k % 2, *((k * j) % 7 for j in range(30000))] for k in range(4)]
    wide.write_text("\n".join(",".join(map(str, line)) for line in [["class", *names], *lines]))
    words = ["train", "--data", wide, "--model", "dense 2 softmax", "--epochs", "1", "--quiet"]
    run_quern(*words, "-o", tmp_path / "one")
    ranks.run(quern, 2, *words, "-o", tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert recipe_of(tmp_path / "one")["table"]["features"] == names
    assert "replay: identical" in run_quern("replay", tmp_path / "one", "--data", wide).stdout


def test_a_fill_that_was_changed(run_quern, tmp_path):
    """A replay names the tensor that explains the others: here the numbers for missing values."""
    lines = [f"{k % 2},{k},{'' if k % 5 == 0 else k * 3 % 7}" for k in range(40)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["kind,a,b", *lines]) + "\n")
    model = tmp_path / "m"
    run_quern("train", "--data", table, "--missing", "mean", "--model", "dense 2 softmax", "--epochs",
              "1", "-o", model)
    content = bytearray(model.read_bytes())
    content[-3] ^= 1  # the last tensor is table.fill
    model.write_bytes(content)
    done = run_quern("replay", model, "--data", table, status=3)
    assert "the replay differs: table.fill[1]" in done.stderr


@pytest.mark.parametrize("header", ["f0,f16,f32,label", "f1,f0,f2,label"])
def test_replay_with_numbers_in_names(header, run_quern, tmp_path):
    """What a model without names was trained on, whatever its columns are called."""
    lines = [f"{k % 7},{k % 5},{k % 3},{k % 2}" for k in range(30)]
    (tmp_path / "bare.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "named.csv").write_text("\n".join([header, *lines]) + "\n")
    model = tmp_path / "m"
    run_quern("train", "--data", tmp_path / "bare.csv", "--label", "last", "--epochs", "1", "--model",
              "dense 2 softmax", "-o", model)
    done = run_quern("replay", model, "--data", tmp_path / "named.csv", "--label", "last")
    assert "replay: identical" in done.stdout


@pytest.mark.parametrize("end", ["", ";", " ; "])
@pytest.mark.parametrize("model,outputs,numbers", [("dense 3 softmax", 3, False), ("dense 9 softmax", 9, True),
                                                   ("dense 20 tanh; dense 8 softmax", 8, False),
                                                   ("dense 3 tanh; dense 9 softmax", 9, True)])
def test_the_last_layer_makes_class_numbers(model, outputs, numbers, end, run_quern, tmp_path):
    """Labels 0 and 8 are class numbers where the last layer has an output for 8, else names. A
    semicolon may end the text of the network."""
    (tmp_path / "t.csv").write_text("0,1.5\n8,2.5\n" * 4)
    run_quern("train", "--data", tmp_path / "t.csv", "--model", model + end, "--epochs", "1", "--quiet",
              "-o", tmp_path / "m")
    recipe = recipe_of(tmp_path / "m")
    assert recipe["model"].endswith(f"dense {outputs} softmax")
    assert (recipe.get("table") is None) == numbers
