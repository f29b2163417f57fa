"""A range of learning rates: the numbers that the contract gives, the bytes of any team, and what is refused."""

import csv
import io
import json

import pytest

import devices
import python_package
import ranks

np = pytest.importorskip("numpy")

NET = ["--model", "dense 12 relu; dense 10 softmax", "--batch", 50, "--seed", 3]


@pytest.fixture(scope="module")
def items(quern, run_quern, tmp_path_factory):
    folder = tmp_path_factory.mktemp("range")
    run_quern("data", "synth", "digits", "--items", 230, "--quiet", "-o", folder / "d.idx", "--labels", folder / "l.idx")
    return ["--data", folder / "d.idx", "--labels", folder / "l.idx"]


def rows_of(folder):
    text = (folder / "lr-range.csv").read_text()
    lines = text.splitlines()
    recipe = json.loads(lines[0][2:])
    return recipe, list(csv.DictReader(io.StringIO("\n".join(lines[2:]))))


def test_the_numbers_of_the_contract(run_quern, items, tmp_path):
    """24.35 from the losses, which are those of a training with the schedule."""
    said = run_quern("search", *items, *NET, "--lr-range", "1e-3,10,40", "--run-dir", tmp_path, "--json").stdout
    told = json.loads(said)
    recipe, rows = rows_of(tmp_path)
    rate, loss, smoothed = (np.array([float(row[name]) for row in rows]) for name in ("learning_rate", "loss", "smoothed"))
    rate = rate.astype(np.float32)
    assert rate[0] == np.float32(1e-3) and rate[-1] <= 10 and abs(rate[-1] / 10 - 1) < 1e-4 and len(rate) == 40
    assert np.allclose(rate[1:] / rate[:-1], recipe["lr_gamma"], rtol=1e-5)
    mean, power, own = 0.0, 1.0, []
    for value in loss:
        mean, power = mean * 0.9 + value * 0.1, power * 0.9
        own.append(mean / (1 - power))
    assert own == list(smoothed)
    lowest = 10 + int(np.argmin(own[10:]))
    steepest = 10 + int(np.argmin([own[t + 1] - own[t - 1] for t in range(10, lowest)]))
    assert np.float32(told["suggestion"]) == rate[steepest] and told["end"] == "high"
    assert np.float32(told["cautious"]) == rate[lowest] / np.float32(10)
    trained = run_quern("train", *items, *NET, "--schedule", "exponential", "--lr", "1e-3", "--lr-gamma",
                        repr(recipe["lr_gamma"]), "--epochs", 8, "--json", "-o", tmp_path / "m").stdout
    means = [json.loads(line)["train_loss"] for line in trained.splitlines() if '"event":"epoch"' in line]
    weights = np.array([50, 50, 50, 50, 30])
    assert np.allclose(means, (loss.reshape(8, 5) * weights).sum(1) / 230, rtol=1e-9)
    assert recipe["epochs"] == 40 and (tmp_path / "lr-range.svg").read_text().startswith("<svg")


def test_the_same_bytes_everywhere(quern, run_quern, items, tmp_path):
    """Threads, ranks and devices; frozen layers of another model; a record that is there is compared."""
    start = tmp_path / "start"
    run_quern("train", *items, *NET, "--epochs", 1, "-o", start)
    words = ["search", *items, *NET[:-1], 5, "--init-from", start, "--freeze", "0..0", "--lr-depth", 0.5, "--momentum",
             0.9, "--lr-range", "1e-2,1e3,30", "--run-dir", tmp_path]
    first = run_quern(*words, "--threads", 1).stdout
    assert "lr-range.csv has all steps" in first
    content = (tmp_path / "lr-range.csv").read_bytes()
    assert b'"freeze":"0..0"' in content
    assert "identical to the record" in run_quern(*words, "--threads", 3).stdout
    done = ranks.run(quern, 2, *words, "--threads", "1")
    assert "identical to the record" in done[0][1], done
    for kind in devices.KINDS:
        (name,), environment = devices.KINDS[kind]()
        assert "identical to the record" in run_quern(*words, "--devices", f"cpu,{name}", env=environment).stdout
    assert (tmp_path / "lr-range.csv").read_bytes() == content
    assert "identical to the record" in run_quern(*words, "--isa", "scalar").stdout
    other = run_quern(*words, "--weight-decay", 0.5, status=1)
    assert "has the record of another range" in other.stderr and "name another folder" in other.stderr
    assert (tmp_path / "lr-range.csv").read_bytes() == content


def test_a_loss_that_leaves_its_range_ends_it(run_quern, items, tmp_path):
    """It is a result, with an exit code of 0; the picture has no height for it."""
    words = ["search", *items, "--model", "dense 9 relu; dense 9 relu; dense 10 none", "--loss", "mse", "--batch", 50]
    told = json.loads(run_quern(*words, "--lr-range", "1,1e12,20", "--json").stdout)
    assert told["end"] in ("range", "diverged") and 0 < len(told["steps"]) < 20
    short = [*words, "--lr-range", "1e3,1e12,20"]
    told = json.loads(run_quern(*short, "--json").stdout)
    assert told["suggestion"] is None and len(told["steps"]) <= 11
    assert "none is suggested: the first ten steps are too noisy" in run_quern(*short).stdout
    (tmp_path / "lr-range.csv").mkdir()  # a record that cannot be read is not replaced
    assert "lr-range.csv" in run_quern(*short, "--run-dir", tmp_path, status=1).stderr


@pytest.mark.parametrize("more, words", [
    (["--lr-range", "10,1e-6"], ["cannot go from 10 to 1e-06", "--lr-range", "the lowest rate first"]),
    (["--lr-range", "1e-6"], ['cannot be "1e-6"', "1e-6,10"]),
    (["--lr-range", "1,2,3,4"], ["cannot be", "1e-6,10,200"]),
    (["--lr-range", "0,1"], ["cannot go from 0 to 1", "above 0"]),
    (["--lr-range", "1e-6,10,5"], ["cannot have 5 steps", "10 to 100000"]),
    (["--lr-range", "1e-30,10,10"], ["more than tenfold", "more steps"]),
    (["--lr-range", "auto", "--batch", None, "--optimizer", "lbfgs"], ["lbfgs has no learning rate", "such as adam"]),
    (["--lr-range", "auto", "--lr", "0.1"], ["--lr does nothing with --lr-range", "leave it out"]),
    (["--lr-range", "auto", "--epochs", "3"], ["--epochs does nothing with --lr-range"]),
    (["--lr-range", "auto", "--grid", "batch 1,2"], ["--grid does nothing with --lr-range", "leave one of them out"]),
    (["--lr-range", "auto", "--freeze", "0..0"], ["need a model", "--init-from"]),
])
def test_what_is_refused(run_quern, items, more, words):
    net = NET[:2] if None in more else NET
    done = run_quern("search", *items, *net, *(word for word in more if word not in ("--batch", None)), status=2)
    assert all(word in done.stderr for word in words), done.stderr


def test_python(run_quern, items, tmp_path):
    """The numbers of the command."""
    python_package.folder()
    import quern
    run_quern("search", *items, *NET, "--lr-range", "1e-3,10,30", "--run-dir", tmp_path)
    words = dict(model=NET[1], batch=50, seed=3, low=1e-3, high=10, steps=30, run_dir=tmp_path)
    found = quern.lr_range(str(items[1]), str(items[3]), **words)
    assert found.identical and len(found.rates) == 30 and found.suggestion in found.rates
    assert found.end == "high" and found._repr_svg_().startswith("<svg") and found.losses[0] > min(found.smoothed)
    with pytest.raises(quern.UsageError, match="does nothing in a range"):
        quern.lr_range(str(items[1]), str(items[3]), lr=0.1)
    with pytest.raises(quern.UsageError, match="low cannot be 'a'"):
        quern.lr_range(str(items[1]), str(items[3]), low="a")
