"""Cross validation and search: folds as the contract says, the numbers of each training by itself, the
same with any number of threads and after an interruption."""

import functools
import hashlib
import json
import signal
import sys
import time
from pathlib import Path

import pytest

import machine
import python_package
import ranks

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
from order import permutation  # noqa: E402
from philox import SPLIT  # noqa: E402

np = pytest.importorskip("numpy")

GRID = ["--grid", "lr 0.05,0.3 batch 8,32", "--folds", 3]
MODEL = "dense 5 tanh; dense 3 softmax"


def folds_of(labels, folds, seed):
    """2.11, as lists of items."""
    order = permutation(seed, len(labels), SPLIT, 0)
    row = sorted(order, key=lambda i: labels[i])  # stable
    return [sorted(int(i) for i in row[k::folds]) for k in range(folds)]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    random = np.random.default_rng(8)
    x = random.normal(size=(70, 3)).astype(np.float32).round(3)
    labels = (x[:, 0] > 0) + 0 + (x[:, 1] > 0.8)
    np.savetxt(folder / "t.csv", np.column_stack([x, labels]), "%.3f,%.3f,%.3f,%d", header="a,b,c,kind",
               comments="")
    return folder, x, labels


def search(run_quern, folder, *more, **how):
    return run_quern("search", "--data", folder / "t.csv", "--label", "kind", "--model", MODEL,
                     "--epochs", 2, "--seed", 4, *more, **how)


def without_times(said):
    event = json.loads(said.splitlines()[-1])
    for setting in event["settings"]:
        del setting["command"]
        for fold in setting["folds"]:
            del fold["seconds"]
    return event


def test_each_fold_is_a_training_of_its_own(run_quern, table):
    python_package.folder()
    import quern

    folder, x, labels = table
    found = without_times(search(run_quern, folder, *GRID, "--json", "--threads", 3).stdout)
    assert len(found["settings"]) == 4
    best = [s["mean"]["accuracy"] for s in found["settings"]]
    assert best == sorted(best, reverse=True)
    first = found["settings"][0]
    lr, batch = first["setting"].split()[1::2]
    data = quern.open(folder / "t.csv", label="kind")
    sums = 0
    for fold, valid, (others, own) in zip(first["folds"], folds_of(labels, 3, 4), data.folds(3, 4)):
        assert np.array_equal(own.values, x[valid]) and len(others) + len(own) == 70
        assert np.array_equal(others.values, np.delete(x, valid, 0))
        model = quern.train(others, valid=own, model=MODEL, epochs=2, seed=4, lr=float(lr),
                            batch=int(batch), threads=1)
        assert model.digest == fold["model"] and fold["items"] == len(valid)
        assert fold["accuracy"] == model.report.valid.accuracy
        assert fold["f1"] == model.report.valid_evaluation["f1"]
        sums += fold["accuracy"]
    assert first["mean"]["accuracy"] == sums / 3


def test_an_interrupted_search_goes_on(run_quern, table):
    folder, _, _ = table
    whole = search(run_quern, folder, *GRID, "--json", "--threads", 1).stdout
    search(run_quern, folder, *GRID, "--quiet", "--run-dir", folder / "run")
    file = folder / "run" / "search.csv"
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 2 + 12
    file.write_text("".join(lines[:7]) + lines[7][:20])
    again = search(run_quern, folder, *GRID, "--json", "--run-dir", folder / "run").stdout
    assert without_times(again) == without_times(whole)
    kept = file.read_text().splitlines(keepends=True)
    assert kept[:7] == lines[:7] and len(kept) == 14
    done = search(run_quern, folder, "--grid", "lr 0.1", "--run-dir", folder / "run", status=1)
    assert "another search" in done.stderr


def rows(folder):
    """The runs in the file, without their times."""
    lines = (folder / "search.csv").read_text().splitlines()[2:]
    return sorted(line.split(",")[:11] + line.split(",")[12:14] for line in lines)


def inode_and_time(path):
    about = path.stat()
    return about.st_ino, about.st_mtime_ns, about.st_size


def wait_for_rows(folder, count):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (folder / "search.csv").exists() and len(rows(folder)) >= count:
            return
        time.sleep(0.005)
    pytest.fail("there are too few results")


def long(size):
    """A search that takes a tenth of a second, and more for a larger size."""
    return ["search", "--label", "kind", "--model", MODEL, "--epochs", 600 * size, "--seed", 4, "--json",
            "--threads", 1, *GRID]


@pytest.fixture(scope="module")
def long_search(run_quern, table):
    """What such a search says and writes."""
    folder, _, _ = table

    @functools.cache
    def make(size):
        to = folder / f"whole-{size}"
        said = run_quern(*long(size), "--data", folder / "t.csv", "--run-dir", to).stdout
        return without_times(said), rows(to)

    return make


def test_ranks_take_whole_runs(quern, table, long_search, tmp_path):
    done = ranks.run(quern, 3, *long(1), "--data", table[0] / "t.csv", "--run-dir", tmp_path)
    assert (without_times(done[0][1]), rows(tmp_path)) == long_search(1)
    assert all(o == e == "" for _, o, e in done[1:])


@pytest.mark.parametrize("dies", [0, 1])
def test_a_rank_dies(quern, table, long_search, tmp_path, dies):
    """Its run is made by another one, and the next writer has all results."""
    def attempt(size):
        to = tmp_path / str(size)
        with ranks.Ranks(quern, 3, *long(size), "--data", table[0] / "t.csv", "--run-dir", to) as all_ranks:
            wait_for_rows(to, 1)
            all_ranks.rank[dies].send_signal(signal.SIGKILL)
            done = all_ranks.wait()
        return (size, to, done) if done[dies][0] != 0 else None

    size, to, done = machine.caught(attempt)
    assert [code for code, _, _ in done] == [-9 if r == dies else 0 for r in range(3)]
    writer = 0 if dies else 1
    assert (without_times(done[writer][1]), rows(to)) == long_search(size)


def test_a_rank_that_is_stopped_holds_nothing_up(quern, table, long_search, tmp_path):
    """The writer of the file is stopped: the next one goes on with it, and ends with the table. The
    first one wakes, and leaves the file as it is."""
    def attempt(size):
        to = tmp_path / str(size)
        words = [*long(size), "--data", table[0] / "t.csv", "--run-dir", to, "--rank-timeout", 2.5]
        with ranks.Ranks(quern, 3, *words) as all_ranks:
            wait_for_rows(to, 1)
            all_ranks.rank[0].send_signal(signal.SIGSTOP)
            if all_ranks.rank[0].poll() is not None or len(rows(to)) == 12:
                return None
            others = [rank.communicate(timeout=60 * machine.PATIENCE) for rank in all_ranks.rank[1:]]
            codes = [rank.returncode for rank in all_ranks.rank[1:]]
            before = inode_and_time(to / "search.csv")
            all_ranks.rank[0].send_signal(signal.SIGCONT)
            _, error = all_ranks.rank[0].communicate(timeout=60 * machine.PATIENCE)
        return size, to, others, [*codes, all_ranks.rank[0].returncode], before, error

    size, to, others, codes, before, error = machine.caught(attempt)
    assert codes == [0, 0, 0] and "has to leave" in error, (others, error)
    assert (without_times(others[0][0]), rows(to)) == long_search(size)
    assert inode_and_time(to / "search.csv") == before


def test_ranks_of_different_searches(quern, table, tmp_path):
    done = ranks.run(quern, 2, *long(1), "--data", table[0] / "t.csv", own={1: ["--momentum", 0.5]}, status=1)
    assert "differs" in done[0][2] and "momentum" in done[0][2]


def test_killed_and_two_at_once(quern, run_quern, table, long_search, tmp_path):
    folder, _, _ = table

    def attempt(size):
        to = tmp_path / str(size)
        words = [*long(size), "--data", folder / "t.csv", "--run-dir", to]
        with ranks.Ranks(quern, 1, *words) as one:
            wait_for_rows(to, 2)
            second = run_quern(*words, status=None)
            one.rank[0].kill()
            one.rank[0].wait()
        return (size, to, words, second, one.rank[0].pid) if one.rank[0].returncode != 0 else None

    size, to, words, second, pid = machine.caught(attempt)
    assert second.returncode == 1 and f"the folder of the search is in use by process {pid}" in second.stderr
    before = rows(to)
    assert (without_times(run_quern(*words).stdout), rows(to)) == long_search(size)
    assert all(row in rows(to) for row in before)
    file = to / "search.csv"
    file.write_text(file.read_text().replace(",24,0.", ",24,1.", 1))
    assert "is not what a search wrote" in run_quern(*words, status=1).stderr


def test_python_searches_alike(run_quern, table, tmp_path):
    """The same digests, order and file as the command."""
    python_package.folder()
    import quern

    folder, _, _ = table
    whole = without_times(search(run_quern, folder, *GRID, "--json", "--run-dir", tmp_path / "a").stdout)
    told = []
    how = {"label": "kind", "model": MODEL, "epochs": 2, "seed": 4, "folds": 3, "threads": 1}
    grid = {"lr": [0.05, 0.3], "batch": [8, 32]}
    found = quern.search(folder / "t.csv", grid=grid, run_dir=tmp_path / "b", on_run=told.append, **how)
    assert len(told) == 12 and told[-1].done == 12
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    for row, setting in zip(found.rows, whole["settings"]):
        assert f"lr {row['lr']} batch {row['batch']}" == setting["setting"]
        assert row["accuracy"] == setting["mean"]["accuracy"]
        assert row["auc_deviation"] == setting["deviation"]["auc"]
        own = [run for run in found.folds if (run["lr"], run["batch"]) == (row["lr"], row["batch"])]
        assert [run["model"] for run in own] == [fold["model"] for fold in setting["folds"]]
    assert found.best == {"lr": found.rows[0]["lr"], "batch": found.rows[0]["batch"]}
    assert len(found.columns()["loss"]) == 4 and found.by == "accuracy"
    told.clear()
    quern.search(folder / "t.csv", grid=grid, run_dir=tmp_path / "a", on_run=told.append, **how)
    assert not told  # the command has made all
    with pytest.raises(quern.UsageError, match="setting lr -1"):
        quern.search(folder / "t.csv", grid={"lr": [1, -1]}, **how)
    for grid in ("lr 0.1", {5: [1]}, [0.1]):
        with pytest.raises(quern.UsageError, match="grid cannot be"):
            quern.search(folder / "t.csv", grid=grid, **how)
    with pytest.raises(quern.UsageError, match="for classes"):
        quern.search(folder / "t.csv", by="rmse", **how)
    with pytest.raises(quern.UsageError, match="whole number from 2"):
        quern.search(folder / "t.csv", **{**how, "folds": 2.5})
    real = quern.search(np.arange(12.).reshape(6, 2), np.linspace(0.5, 3.1, 6, dtype=np.float32), folds=2, epochs=1)
    assert list(real.rows[0])[:4] == ["rmse", "mae", "r2", "loss"] and real.best == {}
    with pytest.raises(ZeroDivisionError):
        quern.search(folder / "t.csv", on_run=lambda run: 1 / 0, **how)


def test_parts_are_merged(run_quern, table, tmp_path):
    """Parts of a job array, by the command and from Python, make the table and the file of one process."""
    python_package.folder()
    import quern

    folder, _, _ = table
    alone = search(run_quern, folder, *GRID, "--quiet", "--threads", 1, "--run-dir", tmp_path / "one").stdout
    to = ["--quiet", "--run-dir", tmp_path / "many"]
    for part in (1, 3, 5):
        assert f"part {part}/5 is done" in search(run_quern, folder, *GRID, *to, "--part", f"{part}/5").stdout
    said = search(run_quern, folder, *GRID, *to, "--part", "4/5", "--json").stdout
    assert json.loads(said) == {"event": "search_part", "part": 4, "parts": 5, "runs": 2, "folder": str(tmp_path / "many")}
    lacking = search(run_quern, folder, *GRID, *to, "--merge", status=1).stderr
    assert "3 of 12 runs are missing" in lacking and "compute part 2 of 5" in lacking
    how = {"label": "kind", "model": MODEL, "epochs": 2, "seed": 4, "folds": 3, "run_dir": tmp_path / "many",
           "grid": {"lr": [0.05, 0.3], "batch": [8, 32]}}
    told = []
    assert quern.search(folder / "t.csv", part=(2, 5), on_run=told.append, **how) is None
    assert [(run.done, run.runs) for run in told] == [(1, 3), (2, 3), (3, 3)]
    other = search(run_quern, folder, "--grid", "lr 0.1", *to, "--merge", status=1).stderr
    assert "another search" in other
    assert search(run_quern, folder, *GRID, *to, "--merge").stdout == alone
    lines = [(tmp_path / name / "search.csv").read_text().splitlines() for name in ("one", "many")]
    one, many = ([line.split(",")[:11] + line.split(",")[12:14] for line in of] for of in lines)
    assert one == many and lines[0][:2] == lines[1][:2]
    assert quern.search(folder / "t.csv", merge=True, **how).folds[0]["model"]
    begin, check = lines[1][2].rsplit(",", 1)  # another model, with the right check of its line
    model = begin.split(",")[12]
    begin = begin.replace(model, model[::-1])
    key = lines[1][0].removeprefix("# quern search ")
    check = hashlib.sha256(f"{key}\n{begin}".encode()).hexdigest()[:16]
    (tmp_path / "many" / "part-1-of-9").mkdir()
    (tmp_path / "many" / "part-1-of-9" / "search.csv").write_text("\n".join([*lines[1][:2], f"{begin},{check}", ""]))
    other = search(run_quern, folder, *GRID, *to, "--merge", status=1).stderr
    assert "two parts have different models of setting 0, fold 1" in other
    with pytest.raises(quern.UsageError, match="part cannot be"):
        quern.search(folder / "t.csv", part=3, **how)


def test_a_fold_lacks_a_class(run_quern, tmp_path):
    """The network follows from all items, as in the training of the best."""
    (tmp_path / "t.csv").write_text("x,kind\n" + "".join(f"{i * i % 7},{i % 2 if i else 2}\n" for i in range(9)))
    words = ["search", "--data", tmp_path / "t.csv", "--label", "kind", "--epochs", 1, "--folds", 3, "--json"]
    found = json.loads(run_quern(*words).stdout)["settings"][0]
    assert sum(fold["items"] for fold in found["folds"]) == 9
    named = json.loads(run_quern(*words, "--model", "dense 64 relu; dense 32 relu; dense 3 softmax").stdout)["settings"][0]
    assert [fold["model"] for fold in found["folds"]] == [fold["model"] for fold in named["folds"]]


def test_the_command_trains_the_best(run_quern, table):
    folder, _, _ = table
    said = search(run_quern, folder, *GRID, "--quiet").stdout.splitlines()
    words = said[-1].split(" train ")[1]
    assert words.endswith("-o best.safetensors") and "--grid" not in words and "--folds" not in words
    assert f"--lr {said[1].split('lr ')[1].split()[0]} " in words


@pytest.mark.parametrize("more,status,what", [
    (["--grid", "lr"], 2, "lacks a value"), (["--grid", "data a"], 2, "is not an option that a grid can have"),
    (["--grid", "lr 1 lr 2"], 2, "stands there twice"), (["--grid", "model 'a"], 2, "open quotes"),
    (["--grid", "lr x"], 2, "--lr cannot be"), (["--grid", "lr 0.1, batch 3"], 2, '"batch" stands after a comma'), (["--valid", "0.1"], 2, "does nothing in a search"),
    (["--runs", "r"], 2, "--runs does nothing in a search"),
    (["--part", "0/4"], 2, "--part cannot be"), (["--part", "1/2"], 2, "--part needs a folder"),
    (["--part", "1/2", "--merge"], 2, "leave one of them out"), (["--part", "1/99", "--run-dir", "x"], 2, "99 parts are too many"),
    (["--by", "x"], 2, "--by cannot be"), (["--by", "rmse"], 2, "--by rmse is not for classes"), (["--folds", "71"], 1, "too few for 71 folds"),
    (["--grid", "lr 3e38"], 1, "no setting could be trained"),
    (["--grid", "loss mse,binary"], 2, "setting loss binary")])
def test_refused(run_quern, table, more, status, what):
    done = search(run_quern, table[0], "--quiet", *more, status=status)
    assert what in done.stderr


def test_a_search_without_a_result_leaves_no_file(run_quern, table, tmp_path):
    search(run_quern, table[0], "--quiet", "--run-dir", tmp_path, "--grid", "loss mse,binary", "--folds", 2, status=2)
    search(run_quern, table[0], "--quiet", "--run-dir", tmp_path, "--grid", "loss mse", "--folds", 2)
