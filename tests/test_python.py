"""The Python package: the command's bytes, data without copies, interruptions, errors."""

import ast
import inspect
import itertools
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from types import SimpleNamespace

import pytest

import builds
import python_package
import test_state_dict
from machine import LONG
from onnx_reader import Graph
from python_package import python

np = pytest.importorskip("numpy")

MODEL = "dense 20 tanh; dense 10 softmax"
SMALL = {"model": MODEL, "epochs": 2, "batch": 32, "threads": 1, "devices": "cpu"}


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


@pytest.fixture
def digits(q):
    return q.digits(300)


def table(items=200, features=3, seed=1):
    values = np.random.default_rng(seed).normal(size=(items, features)).astype(np.float32)
    return values, (values[:, 0] + values[:, 1] > 0).astype(int)


# ---------------------------------------------------------------- the library's types

def test_structs_are_those_of_the_compiler(q, tmp_path):
    """Size, and place and size of each member, as a C program prints them."""
    builds.require("cc")
    import ctypes

    from quern import _abi

    structs = [s for s in vars(_abi).values()
               if isinstance(s, type) and issubclass(s, ctypes.Structure)]
    assert len(structs) > 20
    want, lines = [], ["#include <quern/quern.h>", "#include <stddef.h>", "#include <stdio.h>",
                       "int main(void) {"]
    for s in structs:
        lines.append(f'printf("{s.__name__} %zu\\n", sizeof({s.__name__}));')
        want.append(f"{s.__name__} {ctypes.sizeof(s)}")
        for name, _ in s._fields_:
            lines.append(f'printf("{name} %zu %zu\\n", offsetof({s.__name__}, {name}), '
                         f"sizeof((({s.__name__} *)0)->{name}));")
            want.append(f"{name} {getattr(s, name).offset} {getattr(s, name).size}")
    for name in ("QN_CLUSTER", "QN_F32", "QN_PLAN_CALLS", "QN_CHOICE_SCHEDULE"):
        lines.append(f'printf("{name} %d\\n", (int){name});')
        want.append(f"{name} {getattr(_abi, name)}")
    (tmp_path / "sizes.c").write_text("\n".join([*lines, "}"]))
    subprocess.run(["cc", "-std=c17", f"-I{builds.ROOT / 'include'}", "sizes.c", "-o", "sizes"],
                   cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "sizes"], text=True, capture_output=True, check=True).stdout
    assert said.splitlines() == want


def test_every_function_has_types(q):
    from quern._library import library

    from test_house import public_functions

    for name in public_functions(builds.ROOT):
        function = getattr(library(), name)
        assert function.argtypes is not None, name
        assert all(a is not None for a in function.argtypes), name


def test_the_import_loads_neither_numpy_nor_the_library():
    said = python("import sys, quern; print([m for m in ('numpy', 'ctypes') if m in sys.modules])")
    assert said == "[]\n"


def test_the_stub_says_what_there_is(q):
    """Names, members and parameters of __init__.pyi are those of the package."""
    tree = ast.parse((builds.ROOT / "python" / "quern" / "__init__.pyi").read_text())

    def parameters(f):
        a = f.args
        return [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.kwarg]))]

    stub = {node.name: node for node in tree.body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    imported = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom)
                for alias in node.names if alias.asname}
    assert set(stub) | imported - {"np"} == set(q.__all__)
    for name, node in stub.items():
        there = getattr(q, name)
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == list(inspect.signature(there).parameters), name
            continue
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not member.decorator_list:
                real = inspect.signature(getattr(there, member.name))
                assert parameters(member) == list(real.parameters), member.name
        assert {m.name for m in node.body if isinstance(m, ast.FunctionDef)} <= set(dir(there))
        public = {m for m, v in vars(there).items() if isinstance(v, property) and m[0] != "_"}
        assert public <= {m.name for m in node.body if isinstance(m, ast.FunctionDef)}, name


# ---------------------------------------------------------------- the command's bytes

def write_csv(path, values, labels):
    lines = [",".join([str(y), *map(repr, map(float, x))]) for x, y in zip(values, labels)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_arrays_give_the_bytes_of_the_command(q, run_quern, tmp_path):
    values, labels = table()
    path = write_csv(tmp_path / "t.csv", values, labels)
    run_quern("train", "--data", path, "--model", "dense 8 relu; dense 2 softmax", "--epochs", 3,
              "--optimizer", "adam", "--lr", 0.01, "--valid", 0.25, "-o", tmp_path / "m", "--quiet")
    made = q.train(values, labels, model="dense 8 relu; dense 2 softmax", epochs=3,
                   optimizer="adam", lr=0.01, valid=0.25, output=tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == (tmp_path / "m").read_bytes()
    assert made.digest == q.load(tmp_path / "m").digest
    from_file = q.train(path, model="dense 8 relu; dense 2 softmax", epochs=3, optimizer="adam",
                        lr=0.01, valid=0.25)
    assert from_file.digest == made.digest


def test_bytes_give_the_bytes_of_the_command(q, run_quern, tmp_path):
    run_quern("data", "synth", "digits", "--seed", 1, "--items", 300, "-o", tmp_path / "i",
              "--labels", tmp_path / "l")
    run_quern("train", "--data", tmp_path / "i", "--labels", tmp_path / "l", "--model", MODEL,
              "--epochs", 2, "--batch", 32, "-o", tmp_path / "m", "--quiet")
    source = q.digits(300)
    made = q.train(np.array(source.values), np.array(source.labels), **SMALL)
    assert made.recipe["data"] == q.open(tmp_path / "i", labels=tmp_path / "l").digest
    assert made.digest == q.load(tmp_path / "m").digest


def test_the_label_column_of_a_file(q, tmp_path):
    values, labels = table()
    first = write_csv(tmp_path / "first.csv", values, labels)
    rows = [line.split(",") for line in first.read_text().splitlines()]
    (tmp_path / "last.csv").write_text("".join(",".join(r[1:] + r[:1]) + "\n" for r in rows))
    options = {"model": "dense 2 softmax", "epochs": 1, "threads": 1, "devices": "cpu"}
    model = q.train(first, **options)
    assert q.train(tmp_path / "last.csv", label="last", **options).digest == model.digest
    assert q.replay(model, tmp_path / "last.csv", label="last").digest == model.digest
    with pytest.raises(TypeError, match="only for files"):
        q.train(values, labels, label="last")


def test_the_shape_of_an_item(q, tmp_path):
    """Arrays say nothing of channels; a file gives the same model."""
    values, labels = table()
    path = write_csv(tmp_path / "t.csv", values, labels)
    count = values.shape[1]
    options = {"model": "conv 3 1x2 relu; dense 2 softmax", "epochs": 1, "threads": 1, "devices": "cpu"}
    with pytest.raises(q.UsageError, match="`shape`"):
        q.train(values, labels, **options)
    model = q.train(values, labels, shape=f"1x{count}", **options)
    assert model.recipe["shape"] == f"1x1x{count}"
    assert q.train(path, shape=f"1x{count}", **options).digest == model.digest
    assert q.replay(model, path).digest == model.digest
    assert q.train(values, labels, shape=(1, 1, count), **options).digest == model.digest
    (tmp_path / "net.txt").write_text("conv 3 1x2 relu  # a window\ndense 2 softmax\n")
    for named in (tmp_path / "net.txt", f"@{tmp_path}/net.txt"):
        again = q.train(values, labels, shape=f"1x{count}", **{**options, "model": named})
        assert again.digest == model.digest


def test_arrays_of_images(q):
    """Channels, rows and columns of the array are those of its items; channels that come last are not
    taken for rows."""
    images, labels = np.random.default_rng(3).integers(0, 99, (30, 3, 5, 4)).astype(np.uint8), np.arange(30) % 2
    options = {"model": "conv 2 3; globalpool; dense 2 softmax", "epochs": 1, "threads": 1, "devices": "cpu"}
    model = q.train(images, labels, **options)
    assert model.recipe["shape"] == "3x5x4" and q.Data(images).image_shape == (3, 5, 4)
    for given, more in ((list(images), {}), (images, {"shape": "3x5x4"}), (images.reshape(30, 60), {"shape": (3, 5, 4)})):
        assert q.train(given, labels, **more, **options).digest == model.digest
    assert q.train(images[:, 0], labels, **options).recipe["shape"] == "1x5x4"
    assert q.replay(model, images, labels).digest == model.digest
    assert (model.predict(images.reshape(30, 60)) == model.predict(images)).all()
    last = images.transpose(0, 2, 3, 1)
    with pytest.raises(q.UsageError, match="no pixels"):
        q.train(last, labels, **options)
    with pytest.raises(q.UsageError, match=r"are 5x4x3, and the shape is 3x5x4.*transpose\(0, 3, 1, 2\)"):
        q.train(last, labels, shape="3x5x4", **options)
    with pytest.raises(q.UsageError, match=r"transpose\(0, 3, 1, 2\)"):
        q.train(images, labels, valid=(last, labels), **options)
    with pytest.raises(q.UsageError, match=r"transpose\(0, 3, 1, 2\)"):
        model.predict(last)
    with pytest.raises(q.UsageError, match=r"are 1x5x4, and the shape is 3x5x4.*values\[None\]"):
        model.predict(images[0])
    with pytest.raises(q.InputError, match="at least one item"):
        q.train(images[:0], labels[:0], **options)
    block = "residual { conv 3 1x1 none | batchnorm none } relu; globalpool; dense 2 softmax"
    assert repr(q.train(images, labels, **{**options, "model": block})) == f"<quern.Model: {block}>"
    assert "shape" not in q.train(last, labels, **{**options, "model": "dense 2 softmax"}).recipe


def test_options_have_the_command_s_words(q, run_quern):
    """Each option of the help is one of train(), or of those that belong to the command alone."""
    words = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", run_quern("train", "--help").stdout, re.M))
    command = {"quiet", "verbose", "json", "help", "output", "data", "labels", "test", "test-labels",
               "valid-labels", "label", "meet", "ranks", "rank", "key-file", "interface",
               "meet-timeout", "rank-timeout", "data-from-rank0", "data-parts", "data-copies", "part-cache",
               "min-ranks", "alone", "transport",
               "checkpoint-every",
               "task", "header", "features", "drop", "weight", "category", "init-from", "resize",
               "skip-broken", "no-cache", "dates", "date-format", "query", "test-query", "valid-query",
               "predictions", "masks", "ignore", "text", "text-features", "tokens", "context"}
    known = {word.replace("_", "-") for word in q.options()}
    assert words - command - known == set()
    assert {"lr", "seed", "unit", "checkpoint"} <= known


# ---------------------------------------------------------------- data

@pytest.mark.parametrize("kind", ["float32", "uint8"])
def test_arrays_are_not_copied(q, kind):
    values = python_package.placed(np.arange(600).reshape(200, 3).astype(kind))
    data = q.Data(values)
    assert data.values.ctypes.data == values.ctypes.data and data.values.dtype == kind
    assert not data.values.flags.writeable


def test_values_outlive_their_array(q):
    data = q.Data(np.full((500, 100), 7, np.float32))
    view = data.values
    del data
    assert (view == 7).all()


@pytest.mark.parametrize("values, kind", [
    (np.array([[0, 255]]), np.uint8), (np.array([[0, 256]]), np.float32),
    (np.array([[-1, 3]], np.int8), np.float32), (np.array([[True, False]]), np.uint8),
    (np.array([[1.0, 2.0]]), np.float32), (np.asfortranarray([[1.0, 2], [3, 4]]), np.float32),
    ([[1, 2], [3, 4]], np.uint8), (np.array([["1.5", "2"]], object), np.float32),
    (np.zeros((4, 2, 3)), np.float32)])
def test_other_arrays_are_converted(q, values, kind):
    want = np.asarray(values, np.float32)
    want = want.reshape(len(want), -1)
    data = q.Data(values)
    assert data.values.dtype == kind and data.values.flags.c_contiguous
    assert np.array_equal(data.values, want)


@pytest.mark.parametrize("values", [[1.0, 2.0], [[np.inf]], [[1e39]], [[1 + 2j]],
                                    np.zeros((0, 3)), np.zeros((3, 0))], ids=str)
def test_arrays_that_are_no_table(q, values):
    with pytest.raises(q.InputError):
        q.Data(values)


@pytest.mark.parametrize("labels, numbers, classes", [
    ([0, 1, 2, 1], [0, 1, 2, 1], 3), ([0.0, 2.0, 1.0, 0.0], [0, 2, 1, 0], 3),
    ([3, -1, 3, 10], [1, 0, 1, 2], 3), (["b", "a", "\u00e9", "b"], [1, 0, 2, 1], 3),
    (np.array([True, False, True, True]), [1, 0, 1, 1], 2), ([[1], [0], [1], [0]], [1, 0, 1, 0], 2)])
def test_labels(q, labels, numbers, classes):
    data = q.Data(np.zeros((4, 2)), labels)
    assert data.labels.tolist() == numbers and data.classes == classes


@pytest.mark.parametrize("labels, task", [
    ([0, 1], None), ([np.nan, 1, 1, 0], None), ([[0, 2]] * 4, None), ([2**31, 0, 0, 0], None),
    ([0.5, 1, 1, 0], "classify"), (["a", "b", "a", "b"], "regress"), (["a", None, "a", "b"], None)])
def test_wrong_labels(q, labels, task):
    with pytest.raises(q.InputError):
        q.Data(np.zeros((4, 2)), labels, task=task)


@pytest.mark.parametrize("labels, task", [([0.5, 1, -3, 0], None), ([2, 1, 7, 0], "regress")])
def test_real_labels(q, labels, task):
    data = q.Data(np.zeros((4, 2)), labels, task=task)
    assert data.labels is None and data.targets.tolist() == labels and data.classes == 0


def test_labels_in_doubt_are_refused_as_in_a_file(q):
    """An id for each item is not a class."""
    data = q.Data(np.random.default_rng(1).normal(size=(200, 2)), np.arange(200))
    with pytest.raises(q.InputError, match="task"):
        q.train(data, model="dense 200 softmax")


class Frame:
    """What tables of pandas and polars have in common."""

    def __init__(self, columns, values):
        self.columns, self.values = columns, values

    def to_numpy(self):
        return self.values


def test_a_table_with_columns(q):
    frame = Frame(["height", "width"], np.ones((3, 2), np.float32))
    data = q.Data(frame, ["a", "b", "a"], label_name="kind")
    assert np.array_equal(data.values, np.ones((3, 2))) and data.names == ["height", "width"]
    assert data.class_names == ["a", "b"] and data.label_name == "kind"
    assert q.Data(np.ones((3, 2))).names is None
    with pytest.raises(q.InputError, match="1 names for 2 features"):
        q.Data(frame, names=["height"])


def mixed_table():
    """Columns of numbers and of texts, with missing values; and as CSV."""
    draw = np.random.default_rng(3)
    size = draw.normal(size=120).astype(np.float32)
    values = np.empty((120, 3), object)
    values[:, 0] = [float(x) for x in size]
    values[:, 1] = draw.choice(["red", "blue", "\u00e9cru", "green"], 120)
    values[:, 2] = draw.integers(0, 9, 120)
    values[5, 0] = values[7, 1] = values[9, 2] = None
    labels = np.where((values[:, 1] == "red") | (size > 1), "yes", "no")
    lines = ["size,colour,count,bought"] + [
        ",".join(["" if v is None else str(v) for v in row] + [label])
        for row, label in zip(values, labels)]
    return Frame(["size", "colour", "count"], values), labels, "\n".join(lines) + "\n"


@pytest.mark.parametrize("missing", ["mean", "median", "zero", "drop"])
def test_a_table_of_texts_gives_the_bytes_of_the_command(q, run_quern, tmp_path, missing):
    frame, labels, csv = mixed_table()
    assert q.Data(frame).categories == [None, ["blue", "green", "red", "\u00e9cru"], None]
    (tmp_path / "t.csv").write_text(csv)
    run_quern("train", "--data", tmp_path / "t.csv", "--label", "bought", "--missing", missing,
              "--model", "dense 4 relu; dense 2 softmax", "--epochs", 3, "-o", tmp_path / "m",
              "--quiet")
    model = q.train(q.Data(frame, labels, label_name="bought"), missing=missing, epochs=3,
                    model="dense 4 relu; dense 2 softmax")
    assert bytes(model) == (tmp_path / "m").read_bytes()
    assert model.classes == ["no", "yes"] and model.names == ["size", "colour", "count"]
    assert set(model.predict(tmp_path / "t.csv" if missing != "drop" else Frame(
        frame.columns, frame.values[20:]))) <= {"no", "yes"}


def test_items_that_lack_values_have_no_prediction(q):
    frame, labels, _ = mixed_table()
    model = q.train(q.Data(frame, labels), missing="drop", epochs=1, model="dense 2 softmax")
    lacks = np.array([any(v is None or v == "" or v != v for v in row) for row in frame.values])
    told, outputs = model.predict(frame), model.predict(frame, outputs=True)
    assert 0 < lacks.sum() < len(lacks)
    assert [t is None for t in told] == lacks.tolist() == np.isnan(outputs).all(axis=1).tolist()
    values = np.where(np.arange(60).reshape(20, 3) % 7 == 5, np.nan, 1.0).astype(np.float32)
    own = np.arange(20) % 2
    model = q.train(values, own, missing="drop", epochs=1, model="dense 2 softmax")
    assert ((model.predict(values) == -1) == np.isnan(values).any(axis=1)).all()
    fitted = q.Classifier(missing="drop", epochs=1).fit(values, own)
    with pytest.raises(q.InputError, match="lack a value"):
        fitted.predict(values)


def test_a_validation_set_decides(q):
    draw = np.random.default_rng(4)
    (data, labels), (valid, own) = ((draw.normal(size=(n, 5)).astype(np.float32),
                                     draw.integers(0, 2, n)) for n in (90, 40))
    model = q.train(data, labels, valid=(valid, own), early_stopping=2, epochs=30, lr=0.5,
                    model="dense 6 tanh; dense 2 softmax")
    assert model.recipe["valid_data"] == q.Data(valid, own).digest
    assert q.replay(model, data, labels, valid=(valid, own)).digest == model.digest
    with pytest.raises(q.MismatchError, match="a validation file decided"):
        q.replay(model, data, labels)
    with pytest.raises(q.MismatchError, match="not the validation file"):
        q.replay(model, data, labels, valid=(valid + 1, own))


def test_files_are_read_as_the_training_data_was(q, tmp_path):
    """Codes that were categories are categories in any file, with and without a header."""
    rows = [(f"{i % 4}", f"{i * 7 % 5 / 2}", "no" if i % 4 < 2 else "yes") for i in range(80)]
    text = "".join(",".join(row) + "\n" for row in rows)
    for name, first in (("named", "code,x,y\n"), ("bare", "")):
        (tmp_path / name).write_text(first + text)
    model = q.train(tmp_path / "named", label="last", category="1", epochs=2, test=tmp_path / "named",
                    model="dense 2 softmax")
    assert model.recipe["table"]["features"][0]["categories"] == ["0", "1", "2", "3"]
    told = list(model.predict(tmp_path / "named"))
    assert told == list(model.predict(tmp_path / "bare", label="last"))
    (tmp_path / "floats").write_text("x,code\n" + "".join(f"{x},{code}.0\n" for code, x, _ in rows))
    assert told == list(model.predict(tmp_path / "floats"))
    assert q.replay(model, tmp_path / "named").digest == model.digest


def test_columns_are_matched_by_name(q):
    frame, labels, _ = mixed_table()
    model = q.train(q.Data(frame, labels), missing="mean", epochs=3, model="dense 2 softmax")
    turned = Frame(["count", "size", "colour"], frame.values[:, [2, 0, 1]])
    assert (model.predict(turned) == model.predict(frame)).all()
    with pytest.raises(q.MismatchError, match="colour"):
        model.predict(Frame(["size", "kind", "count"], frame.values))


def test_missing_values_are_refused_by_default(q):
    values, labels = table()
    values[3, 1] = np.nan
    with pytest.raises(q.InputError, match="missing"):
        q.train(values, labels, model="dense 2 softmax")
    model = q.train(values, labels, model="dense 2 softmax", missing="mean", epochs=1)
    values[3, 1] = model.tensor("table.fill")[1]
    assert np.isclose(values[3, 1], np.delete(values[:, 1], 3).astype(float).mean(), atol=1e-6)


def test_regression_gives_the_bytes_of_the_command(q, run_quern, tmp_path):
    values, _ = table()
    targets = (values @ [1, 2, 3] + 0.25).astype(np.float32)
    path = write_csv(tmp_path / "t.csv", values, map(float, targets))
    run_quern("train", "--data", path, "--model", "dense 8 relu; dense 1 none", "--epochs", 5,
              "--loss", "huber", "-o", tmp_path / "m", "--quiet")
    model = q.train(values, targets, model="dense 8 relu; dense 1 none", epochs=5, loss="huber")
    assert bytes(model) == (tmp_path / "m").read_bytes() and model.real
    predicted = model.predict(values)
    assert predicted.dtype == np.float32 and predicted.shape == (200,)
    assert np.array_equal(model.predict(values, outputs=True)[:, 0], predicted)
    assert q.replay(model, path).digest == model.digest
    rest = targets.astype(float) - predicted
    score = q.train(values, targets, test=(values, targets), model="dense 8 relu; dense 1 none",
                    epochs=5, loss="huber").report.test
    assert np.isclose(score.rmse, np.sqrt((rest**2).mean())) and np.isnan(score.accuracy)


# ---------------------------------------------------------------- models

def test_parameters_of_pytorch(q, tmp_path):
    generator = np.random.default_rng(3)
    state = {"0.weight": generator.normal(size=(5, 4)), "0.bias": generator.normal(size=5),
             "2.weight": generator.normal(size=(2, 5)), "2.bias": generator.normal(size=2)}
    kept = test_state_dict.write(tmp_path / "s", state)
    x = generator.normal(size=(6, 4)).astype("f4")
    model = q.import_state(tmp_path / "s", "dense 5 tanh; dense 2 softmax", 4, classes=["no", "yes"])
    logits = np.tanh(x @ kept["0.weight"].T + kept["0.bias"]) @ kept["2.weight"].T + kept["2.bias"]
    assert model.predict(x).tolist() == [("no", "yes")[k] for k in logits.argmax(1)]
    real = q.import_state(tmp_path / "s", "dense 5 tanh; dense 2 none", (1, 2, 2), loss="mse")
    assert np.allclose(real.predict(x, outputs=True), logits, atol=1e-6)
    with pytest.raises(q.MismatchError, match="layer 0"):
        q.import_state(tmp_path / "s", "dense 6 tanh; dense 2 softmax", 4)


def test_a_model_keeps_its_bytes(q, digits, tmp_path):
    model = q.train(digits, test=q.digits(100, first=300), **SMALL)
    assert model.layers == ["dense 20 tanh", "dense 10 softmax"]
    assert (model.inputs, model.outputs, model.parameters) == (784, 10, 784 * 20 + 20 + 210)
    assert model.recipe["epochs"] == 2 and [e.epoch for e in model.history] == [1, 2]
    assert model.history[-1].test.items == 100 == model.report.test.items
    model.save(tmp_path / "m")
    model.save_onnx(tmp_path / "m.onnx")
    assert set(Graph((tmp_path / "m.onnx").read_bytes()).outputs) == {"output", "class"}
    again = pickle.loads(pickle.dumps(model))
    assert bytes(again) == (tmp_path / "m").read_bytes()
    import hashlib

    assert hashlib.sha256(bytes(model)).hexdigest() == model.digest == again.digest


def test_predictions_are_those_of_the_command(q, digits, run_quern, tmp_path):
    model = q.train(digits, output=tmp_path / "m", **SMALL)
    run_quern("data", "synth", "digits", "--seed", 1, "--items", 300, "-o", tmp_path / "i",
              "--labels", tmp_path / "l")
    run_quern("predict", tmp_path / "m", "--data", tmp_path / "i", "--outputs", "-o", tmp_path / "c")
    rows = [line.split(",") for line in (tmp_path / "c").read_text().splitlines()]
    outputs = np.array([row[-10:] for row in rows[1:]], np.float32)
    assert np.array_equal(model.predict(digits, outputs=True), outputs)
    assert np.array_equal(model.predict(digits), outputs.argmax(1))
    assert np.array_equal(model.predict(np.array(digits.values), threads=2), outputs.argmax(1))
    mirrored = np.array(digits.values).reshape(-1, 28, 28)[:, :, ::-1].reshape(-1, 784)
    both = (outputs + model.predict(mirrored, outputs=True)) * np.float32(0.5)
    assert np.array_equal(model.predict(digits, outputs=True, flips=True), both)
    assert np.array_equal(model.predict(digits, flips=True), both.argmax(1))
    assert model.evaluate(digits, flips=True)["correct"] == (both.argmax(1) == np.array(digits.labels)).sum()
    weight = model.tensor("layer0.weight")
    assert weight.shape == (20, 784) and weight.dtype == np.float32
    with pytest.raises(KeyError):
        model.tensor("layer9.weight")


def test_replay(q, digits):
    model = q.train(digits, **SMALL)
    assert q.replay(model, digits, threads=2).digest == model.digest
    with pytest.raises(q.MismatchError, match="digest|data"):
        q.replay(model, q.digits(301))


def test_a_start_from_a_model(q, digits):
    first = q.train(digits, **SMALL)
    second = q.train(digits, init_from=first, **SMALL)
    assert second.digest != first.digest and second.recipe["init_from"] == first.digest
    assert q.replay(second, digits, init_from=first).digest == second.digest
    with pytest.raises(q.QuernError, match="init_from"):
        q.replay(second, digits)


# ---------------------------------------------------------------- training

def test_a_callback_ends_the_training(q, digits, tmp_path):
    """What was trained until then can predict; it is not a model by its recipe, so it is not written."""
    calls = []
    early = q.train(digits, **{**SMALL, "epochs": 9},
                    on_epoch=lambda e: calls.append(e) or e.epoch < 3)
    assert [e.epoch for e in calls] == [1, 2, 3] and not early.complete
    whole = q.train(digits, **{**SMALL, "epochs": 3})
    assert np.array_equal(early.predict(digits, outputs=True), whole.predict(digits, outputs=True))
    with pytest.raises(q.UsageError, match="epochs=3"):
        early.save(tmp_path / "m")
    with pytest.raises(q.UsageError):
        pickle.dumps(early)
    assert not (tmp_path / "m").exists()


def test_an_exception_of_a_callback_ends_the_training(q, digits):
    def fails(epoch):
        raise LookupError(epoch.epoch)

    with pytest.raises(LookupError) as caught:
        q.train(digits, **{**SMALL, "epochs": 1000000}, on_epoch=fails)
    assert caught.value.args == (1,)


def test_callbacks_run_on_the_thread_that_called(q, digits):
    threads = set()
    q.train(digits, **SMALL, on_epoch=lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


INTERRUPTED = """
import os, signal, sys, threading, quern
folder = sys.argv[1]
def begun(epoch):
    if epoch.epoch == 3:
        os.kill(os.getpid(), signal.SIGINT)
options = dict(model="dense 20 tanh; dense 10 softmax", batch=32, threads=1, devices="cpu")
data = quern.digits(300)
try:
    quern.train(data, epochs=1000000, checkpoint=folder, on_epoch=begun, **options)
except KeyboardInterrupt:
    print("interrupted", len(os.listdir(folder)) > 0)
whole = quern.train(data, epochs=4, **options)
print(quern.train(data, epochs=4, **options).digest == whole.digest)
"""


@pytest.mark.parametrize("more", [{}, {"early_stopping": 1, "lr": 3.0}])
def test_a_short_training_is_one_on_a_thread(q, monkeypatch, more):
    """It runs on the thread that calls, and the library keeps its epochs."""
    from quern import training

    draw = np.random.default_rng(5)
    values, labels = draw.normal(size=(80, 3)), np.arange(80) % 2
    words = {"model": "dense 4 tanh; dense 2 softmax", "epochs": 30, "valid": 0.25, **more}
    threads, begin = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda t: threads.append(t) or begin(t))

    def train():
        model = q.train(values, labels, **words)
        return model.digest, [(e.epoch, str(e.train), str(e.valid), e.lr) for e in model.history]

    digest, history = train()
    assert not threads and 0 < len(history) <= 30 and (len(history) < 30) == bool(more)
    assert [epoch for epoch, *_ in history] == list(range(1, len(history) + 1))
    monkeypatch.setattr(training._Run, "_is_short", lambda run: False)
    assert train() == (digest, history) and len(threads) == 1
    monkeypatch.setattr(training, "MOST_KEPT", 0)  # epochs are told one by one
    assert train() == (digest, history)


def test_a_short_training_loses_no_signal(q):
    """One that arrives while the library trains is heard when it has. Python itself loses what a handler
    raises in the release of an object, so a few may be rung for twice."""
    rung = int(python('''
import signal, quern, numpy

class Rung(BaseException):
    pass

rung = 0

def ring(*_):
    global rung
    rung += 1
    raise Rung

signal.signal(signal.SIGALRM, ring)
values, labels = numpy.random.default_rng(1).normal(size=(100, 4)), numpy.arange(100) % 2
quern.train(values, labels, epochs=1)  # which imports what it needs
for turn in range(40):
    try:  # it may ring at once: a busy machine does other things meanwhile
        signal.setitimer(signal.ITIMER_REAL, 0.002 + turn * 0.0003, 0.5)
        while True:
            quern.train(values, labels, model="dense 60 relu; dense 2 softmax", epochs=30)
    except Rung:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(rung)
'''))
    assert 40 <= rung < 50


def test_ctrl_c_ends_with_a_checkpoint(tmp_path):
    assert python(INTERRUPTED, tmp_path / "c") == "interrupted True\nTrue\n"


def test_ctrl_c_is_heard_without_callbacks():
    """The signal comes while the library computes, on a thread of its own, and no Python runs. A training
    before it has imported everything, so only this thread takes processor time."""
    package = str(python_package.folder())
    script = ("import quern; data = quern.digits(300)\n"
              "quern.train(data, epochs=1, threads=1, devices='cpu')\n"
              "try:\n"
              "    print('begun', flush=True)\n"
              "    quern.train(data, epochs=4000000000, threads=1, devices='cpu')\n"
              "except KeyboardInterrupt: print('interrupted')")
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                             env={"PYTHONPATH": package})

    def ticks():
        with open(f"/proc/{child.pid}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[11])

    assert child.stdout.readline() == "begun\n"
    end = ticks() + os.sysconf("SC_CLK_TCK") // 5
    while ticks() < end:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n" and child.returncode == 0


def test_progress_is_a_line(q, digits, capsys, monkeypatch):
    """Each epoch leaves one line. What is shown within it is written over, however often that is."""
    from quern import _progress

    ticks = itertools.count()  # each step is shown
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    q.train(digits, progress=True, **SMALL)
    said = capsys.readouterr().err
    *lines, rest = said.split("\n")
    left = [line for line in (line.rpartition("\r")[2] for line in lines) if not line.startswith("note: ")]
    assert [line[:11] for line in left] == ["epoch 1/2  ", "epoch 2/2  "] and not rest
    assert said.count(" items/s") == 2 * -(-len(digits) // SMALL["batch"])
    q.train(digits, **SMALL)
    assert capsys.readouterr() == ("", "")


def test_two_models_at_once(q, digits):
    want = [q.train(digits, seed=s, **SMALL).digest for s in (1, 2)]
    got = [None, None]

    def work(i):
        got[i] = q.train(digits, seed=i + 1, **SMALL).digest

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == want and want[0] != want[1]


# ---------------------------------------------------------------- errors

@pytest.mark.parametrize("options, kind, words", [
    ({"batch": 0}, "UsageError", "`batch`: the batch is 0; give"),
    ({"optimizer": "adamm"}, "UsageError", 'did you mean "adam"'),
    ({"nesterov": True, "momentum": 0}, "UsageError", "`nesterov`: Nesterov's form needs a momentum greater than 0"),
    ({"lr": "fast"}, "UsageError", "lr cannot be 'fast'"),
    ({"batch": -1}, "UsageError", "batch cannot be -1"),
    ({"batch": 1.5}, "UsageError", "batch cannot be 1.5"),
    ({"checkpoint_every": "5m"}, "UsageError", "checkpoint_every needs checkpoint"),
    ({"checkpoint": "c", "checkpoint_every": "5x"}, "UsageError", "checkpoint_every cannot be '5x'"),
    ({"checkpoint": "c", "checkpoint_every": 1.5}, "UsageError", "checkpoint_every cannot be 1.5"),
    ({"devices": "cuda:77"}, "UnsupportedError", "cuda"),
    ({"lr": 1e30, "model": "dense 9 relu; dense 10 none", "loss": "mse"}, "NumericError", "step"),
    ({"output": "/nowhere/at/all"}, "FileError", "/nowhere/at")])
def test_errors_say_what_to_do(q, digits, options, kind, words):
    with pytest.raises(q.QuernError) as caught:
        q.train(digits, **{**SMALL, **options})
    assert type(caught.value).__name__ == kind and words in str(caught.value)
    assert caught.value.what and str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_unknown_option(q, digits):
    with pytest.raises(TypeError, match="did you mean 'batch'"):
        q.train(digits, btch=3)


@pytest.mark.parametrize("options", [{"header": True}, {"task": 1}, {"features": 3.5},
                                     {"classes": "ten"}], ids=str)
def test_options_of_a_file_have_a_kind(tmp_path, options):
    """A number for a text is refused. ctypes would take it for an address."""
    (tmp_path / "t.csv").write_text("y,a\n0,1.5\n1,2.5\n")
    script = ("import sys, quern\ntry: quern.open(sys.argv[1], **%r)\n"
              "except quern.UsageError as e: print(e)" % options)
    (word, value), = options.items()
    assert python(script, tmp_path / "t.csv") == f"{word} cannot be {value!r}\n"


def test_a_fraction_can_be_a_number_of_numpy(q, digits):
    want = q.train(digits, valid=0.25, **SMALL).digest
    assert q.train(digits, valid=np.float32(0.25), **SMALL).digest == want


def test_errors_are_python_s_too(q, tmp_path):
    with pytest.raises(ValueError):
        q.open(tmp_path / "absent.csv")
    with pytest.raises(OSError):
        q.load(tmp_path / "absent")
    (tmp_path / "m").write_text("no model")
    with pytest.raises(q.FormatError):
        q.load(tmp_path / "m")


def test_runs_and_reports(q, tmp_path):
    """A file of runs, and a page of one of them with the mistakes of a set."""
    data = q.digits(120)
    model = q.train(data, model="dense 10 softmax", epochs=2, devices="cpu", threads=1, runs=tmp_path / "r.sqlite",
                    run_name="a", report=tmp_path / "own.html", progress=False)
    [run] = q.runs(tmp_path / "r.sqlite")
    assert (run["name"], run["model"], run["epochs"], run["recipe"]["batch"]) == ("a", model.digest, 2, "64")
    assert run["accuracy"] == pytest.approx(model.report.train.accuracy)
    q.report(f"{tmp_path / 'r.sqlite'}:a", tmp_path / "page.html", model=model, data=data, devices="cpu", threads=1)
    for name in ("own.html", "page.html"):
        assert "<h2 id=\"mistakes\">" in (tmp_path / name).read_text()
    with pytest.raises(TypeError, match="path"):
        q.report("nowhere")
    with pytest.raises(q.InputError, match="there is no run"):
        q.report(f"{tmp_path / 'r.sqlite'}:b", tmp_path / "x.html")


def test_devices(q):
    found = q.devices()
    assert found[0].id == "cpu" and found[0].cores >= 1 and "scalar" in found[0].isas


# ---------------------------------------------------------------- installation

@LONG
def test_a_wheel_for_every_python(quern, tmp_path):
    """scripts/wheel.sh tries it in an environment of its own, beside the command."""
    env = {**os.environ, "QUERN": quern, "PYTHON": sys.executable}
    done = subprocess.run([builds.ROOT / "scripts" / "wheel.sh", tmp_path], text=True, env=env,
                          capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert f"{quern} trains the same" in done.stdout
    wheel, = tmp_path.iterdir()
    assert re.fullmatch(r"quern-[\d.]+-py3-none-manylinux_2_[\w.]+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as parts:
        names = [n for n in parts.namelist() if ".dist-info/" not in n]
    assert "quern/libquern.so" in names and "quern/_abi.py" in names
    assert all(n.startswith("quern/") for n in names)
