"""What is told when numbers leave their range: the step and, where it can be known, the layer in
which it began, in the same words whichever devices took part and however many cores."""

import subprocess

import pytest

import builds
import devices

ROWS = 96
DEEP = '"dense 30 relu; dense 20 relu; dense 3 softmax"'
CASES = {
    # what follows `quern train`; what it says, with float32 on a GPU only the first part of it; the
    # step
    "NaN": (f"--lr 1e30 --model {DEEP}", "the loss became NaN",
            ": outputs of layer 1 are not finite", 2),
    "infinity": ('--lr 1e30 --loss mse --model "dense 7 none; dense 3 none"',
                 "the loss became too large to be summed", ": outputs of layer 1 are too large", 2),
    "sum": ('--lr 30 --loss mse --model "dense 7 none; dense 3 none"',
            "the loss became too large to be summed", ": outputs of layer 1 are too large", 2),
    "gradients": ('--unit 55 --loss mse --model "dense 70 relu; dense 65 relu; dense 3 none"',
                  "a gradient of layer 2 left the range of its sum", "", 1),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "numbers.csv"
    path.write_text("".join(f"{i % 3},{i % 5},{i * i % 9},{i % 7},{i // 9},{i * 5 % 8}\n"
                            for i in range(ROWS)))
    return path


@pytest.fixture(scope="module", params=["cpu:1", "cpu:2", "opencl", "cuda"])
def team(request):
    """(name of a device, environment)"""
    if request.param in devices.KINDS:
        names, environment = devices.KINDS[request.param]()
        return names[0], environment
    return request.param, None


@pytest.mark.parametrize("case, arith", [(case, "i14") for case in CASES] + [("NaN", "f32")])
def test_all_say_the_same(team, table, tmp_path, case, arith):
    device, environment = team
    how, words, where, step = CASES[case]
    program = builds.ready("release") / "quern"
    done = subprocess.run(f"{program} train --data {table} --scale none --batch 32 --epochs 3 "
                          f"--quiet --arith {arith} --devices {device} -o m {how}", shell=True,
                          cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    if arith == "f32" and not device.startswith("cpu"):
        where = ""
    assert done.returncode == 1
    diverged = "the training diverged: " if step > 1 else ""
    assert f"quern train: {diverged}{words}{where}\n  at step {step}, epoch 1\n" in done.stderr
    assert ("take a --lr below " if step > 1 else "a smaller --unit") in done.stderr
    assert not list(tmp_path.glob("m*"))


def test_a_loss_above_that_of_guessing(table, tmp_path):
    """It is told once: where it does not fall, or at the end. A run that learns says nothing."""
    program = builds.ready("release") / "quern"

    def notes(*more):
        done = subprocess.run([program, "train", "--data", table, "-o", "m", *more],
                              cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return [line for line in (done.stdout + done.stderr).splitlines() if "guessing" in line]
    wild = ["--model=dense 3 softmax", "--scale", "none", "--lr", "3", "--devices", "cpu"]
    assert notes(*wild, "--epochs", "4") == ["note: the loss is above 1.099, that of guessing: if it does not fall, "
                                             "take a lower --lr"]
    assert ["more epochs may help" in note for note in notes(*wild, "--epochs", "2")] == [True]
    assert notes(wild[0], "--epochs", "30", "--lr", "0.5") == notes(*wild, "--epochs", "2", "--quiet") == []
    assert notes(*wild, "--epochs", "1") == []


@pytest.mark.parametrize("path", ["batchnorm", "conv 1 1x1"])
def test_outputs_that_are_added_at_once(table, tmp_path, path):
    """The processor does not keep what the end of a residual path gives, and says whether that was
    finite all the same."""
    done = subprocess.run([builds.ready("release") / "quern", "train", "--data", table, "--scale", "none",
                           "--shape", "1x1x5", "--batch", "32", "--epochs", "3", "--quiet", "--devices", "cpu:2",
                           "--lr", "3e38", "--model", f"residual {{ {path} }} relu; dense 3 softmax", "-o", "m"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "the loss became NaN: outputs of layer 0 are not finite" in done.stderr


def test_outputs_of_layers_that_do_not_train(table, tmp_path):
    """The processor overwrites their outputs during the forward pass, and names the first of them
    that were not finite all the same: those of layer 3 take the memory of those of layer 1."""
    program = builds.ready("release") / "quern"
    large = tmp_path / "large.csv"
    rows = [line.split(",") for line in table.read_text().split()]
    large.write_text("".join(",".join([row[0], *(str(float(cell) * 3e37) for cell in row[1:])]) + "\n"
                             for row in rows))
    network = "dense 8 none; dense 8 none; dense 8 none; dense 8 none; dense 3 softmax"
    common = ["--scale", "none", "--batch", "32", "--epochs", "1", "--quiet", "--devices", "cpu:2"]

    def train(*more):
        return subprocess.run([program, "train", *common, *more], cwd=tmp_path, capture_output=True, text=True,
                              timeout=300)
    first = train("--data", table, "--model", network, "--lr", "1e-9", "-o", "first")
    assert first.returncode == 0, first.stderr
    done = train("--data", large, "--model", network, "--init-from", "first", "--freeze", "all-but-last", "-o", "m")
    assert "the loss became NaN: outputs of layer 3 are not finite" in done.stderr
