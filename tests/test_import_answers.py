"""What an imported network answers: classes, several labels, pixels; by the last layer and the loss (docs/formats.md)."""

import json
import subprocess

import numpy as np
import pytest

import python_package
import test_state_dict


@pytest.fixture
def state(tmp_path):
    """Parameters of a network with five outputs, items, and the sums of the last layer."""
    rng = np.random.default_rng(3)
    one, two, bias = rng.normal(size=(6, 4)), rng.normal(size=(5, 6)), rng.normal(size=5)
    test_state_dict.write(tmp_path / "s", {"a.weight": one, "a.bias": np.zeros(6), "b.weight": two, "b.bias": bias})
    x = rng.normal(size=(9, 4)).round(3)
    np.savetxt(tmp_path / "x.csv", x, fmt="%.3f", delimiter=",")
    return tmp_path, np.maximum(x @ one.T, 0) @ two.T + bias


def run(quern, *words, status=0):
    done = subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def show(quern, path):
    return json.loads(json.loads(run(quern, "model", "show", path, "--json"))["recipe"])


def imported(quern, folder, last, *more, status=0):
    return run(quern, "model", "import", folder / "s", "--input", "4", "--model", f"dense 6 relu; {last}", "-o", folder / "m",
               *more, status=status)


def predicted(quern, folder):
    run(quern, "predict", folder / "m", "--data", folder / "x.csv", "--unlabelled", "-o", folder / "p", "--quiet")
    header, *rows = (folder / "p").read_text().splitlines()
    return header.split(","), np.array([[float(cell) for cell in row.split(",")[1:]] for row in rows])


def test_several_labels(quern, state):
    folder, z = state
    told = imported(quern, folder, "dense 5 sigmoid", "--loss", "binary", "--classes", "e,d,c,b,a")
    assert "note" not in told
    header, found = predicted(quern, folder)
    assert header == ["item", "e", "d", "c", "b", "a"] and np.abs(found - 1 / (1 + np.exp(-z))).max() < 1e-6
    first = (folder / "m").read_bytes()
    assert "read as 5 labels" in imported(quern, folder, "dense 5 sigmoid", "--classes", "e,d,c,b,a")
    assert (folder / "m").read_bytes() == first
    names = sorted("abcde")
    (folder / "y.csv").write_text(",".join([*"wxyz", *names]) + "\n" + "\n".join(
        row + "," + ",".join(str(int(z[i, "edcba".index(name)] > 0)) for name in names)
        for i, row in enumerate((folder / "x.csv").read_text().splitlines())) + "\n")
    assert "accuracy 100.00 %" in run(quern, "evaluate", folder / "m", "--data", folder / "y.csv")
    python_package.folder()
    import quern as package
    model = package.import_state(folder / "s", "dense 6 relu; dense 5 sigmoid", 4, classes=list("edcba"))
    assert model.classes == list("edcba") and model.digest == package.load(folder / "m").digest


def test_other_losses(quern, state):
    folder, z = state
    imported(quern, folder, "dense 5 sigmoid", "--loss", "mse", "--quiet")
    assert (predicted(quern, folder)[1][:, 0] == z.argmax(axis=1)).all()
    imported(quern, folder, "dense 5 softmax", "--loss", "cross-entropy", "--quiet")
    assert (predicted(quern, folder)[1][:, 0] == z.argmax(axis=1)).all()
    for last, more, said in (("dense 5", ["--loss", "binary"], ["several labels", "dense 5 none", "sigmoid"]),
                             ("dense 5", ["--loss", "cross-entropy"], ["needs softmax", "--loss"]),
                             ("dense 5 sigmoid", ["--loss", "bce"], ['did you mean "binary"']),
                             ("dense 1 softmax", ["--classes", "1"], ["one output", "--loss binary", "0 classes"]),
                             ("dense 5 sigmoid", ["--classes", "a,b"], ["2 classes", "5 outputs"])):
        told = imported(quern, folder, last, *more, status=2)
        assert all(word in told for word in said), told
    python_package.folder()
    import quern as package
    for last in ("dense 5 sigmoid", "dense 5 softmax", "dense 5"):
        for classes in (2, ["a", "b"]):  # as the command, the package gives no output without a name
            with pytest.raises(package.UsageError, match="2 (classes|labels), and the last layer has 5 outputs"):
                package.import_state(folder / "s", f"dense 6 relu; {last}", 4, classes=classes)


def test_a_ready_model_with_a_label_for_each_output(quern, tmp_path):
    """resnet8 of 3 outputs: the bytes of its parameters are those of the file, and the last layer is a sigmoid."""
    rng = np.random.default_rng(5)
    np.savez(tmp_path / "d.npz", x=rng.integers(0, 256, (12, 3, 8, 8)).astype(np.uint8), y=np.arange(12) % 3)
    run(quern, "train", "--data", tmp_path / "d.npz", "--model", "resnet8", "--shape", "3x8x8", "--epochs", "1", "--quiet",
        "-o", tmp_path / "t")
    test_state_dict.write(tmp_path / "s", {name: t for name, t in test_state_dict.read(tmp_path / "t")[1].items() if name.startswith("layer")})
    given = ["model", "import", tmp_path / "s", "--model", "resnet8", "--input", "3x8x8", "--scale", "unit", "--quiet", "-o", tmp_path / "m"]
    run(quern, *given, "--loss", "binary", "--classes", "dog,outside,night")
    recipe = show(quern, tmp_path / "m")
    assert recipe["task"] == "multilabel" and recipe["model"].endswith("; dense 3 sigmoid")
    assert recipe["table"]["classes"] == ["dog", "outside", "night"]
    run(quern, *given, "--classes", "3")
    assert show(quern, tmp_path / "m")["model"].endswith("; dense 3 softmax")


def test_a_found_network_of_one_output(quern, tmp_path):
    """It tells two classes apart, or predicts a number; which of the two must be said."""
    shapes = {**test_state_dict.resnet(*test_state_dict.TORCHVISION["resnet18"][:3]), "fc": (1, 512)}
    tensors = {f"{name}.weight": np.zeros(shape) for name, shape in shapes.items()}
    for name, shape in shapes.items():
        if len(shape) == 1:
            tensors |= {f"{name}.{part}": np.ones(shape) for part in ("bias", "running_mean", "running_var")}
    test_state_dict.write(tmp_path / "s", {**tensors, "fc.bias": np.ones(1)}, "BF16")
    python_package.folder()
    import quern as package
    with pytest.raises(package.UsageError, match="one output"):
        package.import_state(tmp_path / "s")
    assert package.import_state(tmp_path / "s", classes=0).recipe["task"] == "regress"
    model = package.import_state(tmp_path / "s", loss="binary", classes=["no", "yes"])
    assert model.recipe["model"].endswith("; dense 1 sigmoid") and model.classes == ["no", "yes"]
    run(quern, "model", "import", tmp_path / "s", "--loss", "binary", "--classes", "no,yes", "--quiet", "-o", tmp_path / "m")
    assert model.digest == package.load(tmp_path / "m").digest
