"""Trainings in stages: the same bytes after an interruption, and predictions after each stage."""

import pytest

import python_package

np = pytest.importorskip("numpy")

STAGES = "epochs 2 lr 0.3; epochs 2 lr 0.05 schedule cosine warmup 2"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stages")
    random = np.random.default_rng(3)
    for name, items in (("train", 90), ("test", 20)):
        x = random.normal(size=(items, 4)).astype(np.float32)
        np.savetxt(folder / f"{name}.csv", np.column_stack([x, (x[:, 0] > 0) + (x[:, 1] > 1)]), "%.4f",
                   ",", header="a,b,c,d,kind", comments="")
    return folder


def train(run_quern, sets, out, *more, **how):
    return run_quern("train", "--data", sets / "train.csv", "--label", "kind", "--model",
                     "dense 5 tanh; dense 3 softmax", "--batch", 16, "--momentum", 0.9, "--seed", 2,
                     "--threads", 1, "--quiet", "-o", sets / out, *more, **how)


def test_each_stage_writes_its_predictions(run_quern, sets):
    train(run_quern, sets, "both", "--stages", STAGES, "--test", sets / "test.csv", "--predictions",
          sets / "predictions")
    train(run_quern, sets, "first", "--epochs", 2, "--lr", 0.3)
    for stage, model in (("1", "first"), ("2", "both")):
        run_quern("predict", sets / model, "--data", sets / "test.csv", "--quiet", "-o", sets / "p.csv")
        written = (sets / "predictions" / f"stage{stage}-test.csv").read_text()
        assert written == (sets / "p.csv").read_text()
    assert "identical" in run_quern("replay", sets / "both", "--data", sets / "train.csv", "--label",
                                    "kind", "--quiet").stdout


def test_a_stage_that_ends_early_has_predictions(run_quern, sets):
    """Those of the model."""
    train(run_quern, sets, "early", "--stages", "epochs 1 lr 0.3; epochs 40 lr 0.3", "--valid", sets / "test.csv",
          "--early-stopping", 1, "--predictions", sets / "early-predictions")
    run_quern("predict", sets / "early", "--data", sets / "test.csv", "--quiet", "-o", sets / "p.csv")
    assert (sets / "early-predictions" / "stage2-valid.csv").read_text() == (sets / "p.csv").read_text()


def test_predictions_into_a_file(run_quern, sets):
    done = train(run_quern, sets, "no", "--test", sets / "test.csv", "--predictions", sets / "test.csv", status=1)
    assert "this is not a folder" in done.stderr and "--predictions" in done.stderr and not (sets / "no").exists()


@pytest.mark.parametrize("name", ["stage1-test.csv", "stage12-valid.csv"])
def test_predictions_replace_no_data(run_quern, sets, name):
    """Nor the model: files that a training may write itself are named before it begins."""
    folder = sets / "of-stages"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes((sets / "test.csv").read_bytes())
    for test, out, said in ((folder / name, "no", f"--test is {name} in the folder of --predictions"),
                            (sets / "test.csv", folder / name, f"-o is {name} in the folder")):
        assert said in train(run_quern, sets, out, "--test", test, "--predictions", folder, status=2).stderr
    assert (folder / name).read_bytes() == (sets / "test.csv").read_bytes()


def test_one_stage_is_none(run_quern, sets):
    train(run_quern, sets, "one", "--stages", "Epochs 3 LR 0.2;", "--schedule", "step", "--lr-step", 2)
    train(run_quern, sets, "plain", "--epochs", 3, "--lr", 0.2, "--schedule", "step", "--lr-step", 2)
    assert (sets / "one").read_bytes() == (sets / "plain").read_bytes()


@pytest.mark.parametrize("stages,what", [
    ("epochs 2 batch 32; epochs 3", '"batch" cannot change between stages'),
    ("lr 0.1", "does not say its epochs"), ("epochs 2 lr 0", 'lr cannot be "0"'),
    ("epochs 2 epochs 3", "twice"), ("epochs 2 lr-step 3", "schedule step"), ("epochs 2;;", "no stage"),
    ("epochs 4294967295; epochs 1", "too many epochs"), ("epochs", "no value")])
def test_refused(run_quern, sets, stages, what):
    done = train(run_quern, sets, "no", "--stages", stages, status=2)
    assert what in done.stderr and not (sets / "no").exists()


def test_refused_beside_others(run_quern, sets):
    more = ["--stages", "epochs 2; epochs 2"]
    assert "--epochs is not the sum" in train(run_quern, sets, "no", *more, "--epochs", 5, status=2).stderr
    assert "--test FILE" in train(run_quern, sets, "no", *more, "--predictions", sets / "x",
                                  status=2).stderr


@pytest.mark.parametrize("end", [1, 2, 3])
def test_a_run_goes_on_in_its_stage(sets, tmp_path, end):
    python_package.folder()
    import quern

    given = dict(data=sets / "train.csv", label="kind", model="dense 5 tanh; dense 3 softmax", batch=16,
                 momentum=0.9, stages=STAGES, seed=2, threads=1)
    whole = quern.train(**given)
    assert [e.stage for e in whole.history] == [1, 1, 2, 2]
    assert not quern.train(**given, checkpoint=tmp_path / "c", on_epoch=lambda e: e.epoch < end).complete
    again = quern.train(**given, checkpoint=tmp_path / "c", resume=True)
    assert again.digest == whole.digest and len(again.history) == 4 - end
