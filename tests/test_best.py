"""The best epoch, early stopping, more epochs after the end, a start from another model: as one types
it. What the recipe makes of it is checked by the oracle, checkpoints in src/train/best_test.c."""

import json
import os
import re
import resource

import numpy as np
import pytest

import devices
import ranks
import recipes


@pytest.fixture(scope="module")
def data(run_quern, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "d.csv"
    run_quern("data", "synth", "digits", "--items", "300", "-o", path)
    return path


def words(data, out, *more):
    return ["train", "--data", data, "--model", "dense 12 relu; dense 10 softmax", "--batch", "32",
            "--lr", "0.5", *more, "-o", out]


def test_early_stopping(data, quern, run_quern, tmp_path):
    out = tmp_path / "m.st"
    more = ["--valid", "0.3", "--epochs", "60", "--early-stopping", "2"]
    done = run_quern(*words(data, out, *more, "--run-dir", tmp_path / "r", "--json"))
    notes = " ".join(json.loads(line).get("text", "") for line in done.stdout.splitlines())
    last = int(re.search(r"stopped early, after epoch (\d+) of 60", notes)[1])
    best = int(re.search(r"the model is that of epoch (\d+)", notes)[1])
    assert last == best + 2 < 60
    rows = [line.split(",") for line in (tmp_path / "r" / "metrics.csv").read_text().splitlines()]
    losses = [float(row[rows[0].index("valid_loss")]) for row in rows[1:]]
    assert len(losses) == last and min(losses) == losses[best - 1]
    end = json.loads(done.stdout.splitlines()[-1])
    assert end["loss"] == pytest.approx(losses[best - 1], rel=1e-6)  # of the model that was written
    other = tmp_path / "o.st"
    ranks.run(quern, 3, *words(data, other, *more), "--threads", "1", "--quiet")
    assert recipes.sha256(other) == recipes.sha256(out)
    done = run_quern("replay", out, "--data", data)
    assert done.stdout.splitlines()[-1].startswith("replay: identical")


def test_more_epochs(data, run_quern, tmp_path):
    """A complete run goes on; what it gives is what a longer run gives."""
    run_quern(*words(data, tmp_path / "a.st", "--epochs", "5"))
    more = ["--checkpoint", tmp_path / "c", "--run-dir", tmp_path / "r"]
    run_quern(*words(data, tmp_path / "b.st", "--epochs", "2", *more))
    done = run_quern(*words(data, tmp_path / "b.st", "--epochs", "5", *more, "--resume"))
    assert "resumed at step 20 of 50" in done.stderr
    assert recipes.sha256(tmp_path / "a.st") == recipes.sha256(tmp_path / "b.st")
    assert len((tmp_path / "r" / "metrics.csv").read_text().splitlines()) == 6
    done = run_quern(*words(data, tmp_path / "b.st", "--epochs", "4", *more, "--resume"), status=2)
    assert "give --epochs 5 or more" in done.stderr
    done = run_quern(*words(data, tmp_path / "b.st", "--epochs", "9", "--schedule", "cosine", *more,
                            "--resume"), status=1)
    assert "only --epochs may differ, except with the schedule cosine" in done.stderr


def test_more_epochs_of_a_default_table(tmp_path, run_quern):
    """The schedule is cosine though nobody said so: the message says what works, and it works."""
    (tmp_path / "t.csv").write_text("y,a\n" + "".join(f"{i % 2},{i * 7 % 31}\n" for i in range(60)))
    train = ["train", "--data", tmp_path / "t.csv", "--quiet", "-o", tmp_path / "m"]
    more = ["--checkpoint", tmp_path / "c", "--epochs"]
    run_quern(*train, *more, 2)
    done = run_quern(*train, *more, 4, "--resume", status=1)
    assert "epochs 2 and 4; with the schedule cosine, all learning rates depend on that number" in done.stderr
    for word in ("start again without --resume", "another folder (--checkpoint)", "--schedule constant", "by --init-from"):
        assert word in done.stderr
    run_quern(*train[:-1], tmp_path / "n", "--init-from", tmp_path / "m", "--checkpoint", tmp_path / "d", "--epochs", 2)
    constant = [*train, "--schedule", "constant", "--checkpoint", tmp_path / "e", "--epochs"]
    run_quern(*constant, 2)
    run_quern(*constant, 4, "--resume")


def test_start_from_a_model(data, quern, run_quern, tmp_path):
    start, out = tmp_path / "s.st", tmp_path / "m.st"
    run_quern(*words(data, start, "--epochs", "1"))
    run_quern(*words(data, out, "--epochs", "1", "--seed", "2", "--init-from", start))
    done = run_quern("replay", out, "--data", data, "--init-from", start)
    assert done.stdout.splitlines()[-1].startswith("replay: identical")
    done = run_quern("replay", out, "--data", data, status=1)
    assert "give that model with --init-from" in done.stderr
    done = run_quern("replay", start, "--data", data, "--init-from", start, status=1)
    assert "leave out --init-from" in done.stderr
    done = run_quern(*words(data, out, "--init-from", data), status=1)
    assert "d.csv" in done.stderr
    narrow = [w.replace("12", "11") if "dense" in str(w) else w for w in words(data, out)]
    done = run_quern(*narrow, "--init-from", start, status=1)
    assert 'is "dense 12 relu" for an input of 784x1x1, that of this network "dense 11 relu"' in done.stderr
    # Ranks that were told different things notice.
    done = ranks.run(quern, 2, *words(data, out, "--epochs", "1"), "--threads", "1",
                     own={1: ["--init-from", start]}, status=None)
    assert all(code != 0 for code, _, _ in done)
    assert "--init-from" in done[0][2] + done[1][2]


def test_a_validation_file(data, quern, run_quern, tmp_path):
    """It decides on the best epoch, so the recipe has its digest, and a replay needs it."""
    valid, other = tmp_path / "valid.csv", tmp_path / "other.csv"
    run_quern("data", "synth", "digits", "--items", "90", "--seed", "7", "-o", valid)
    run_quern("data", "synth", "digits", "--items", "90", "--seed", "8", "-o", other)
    out, again = tmp_path / "m.st", tmp_path / "o.st"
    own = words(data, out, "--valid", valid, "--epochs", "60", "--early-stopping", "2")
    done = run_quern(*own)
    assert "stopped early" in done.stderr and "the model is that of epoch" in done.stderr
    for from_first in ([], ["--data-from-rank0"]):
        ranks.run(quern, 2, *own[:-1], again, *from_first, "--threads", "1", "--quiet")
        assert recipes.sha256(again) == recipes.sha256(out)
    done = run_quern("replay", out, "--data", data, "--valid", valid)
    assert done.stdout.splitlines()[-1].startswith("replay: identical")
    done = run_quern("replay", out, "--data", data, status=1)
    assert "a validation file decided on the best epoch" in done.stderr
    assert "give that file with --valid" in done.stderr
    done = run_quern("replay", out, "--data", data, "--valid", other, status=1)
    assert "this is not the validation file that decided" in done.stderr
    done = run_quern("replay", out, "--data", data, "--valid", "0.2", status=2)
    assert "the recipe holds the fraction" in done.stderr


@pytest.mark.parametrize("more", [["--early-stopping", "2"], ["--keep", "best"]])
def test_needs_validation_items(data, run_quern, tmp_path, more):
    done = run_quern(*words(data, tmp_path / "m.st", *more), status=2)
    assert "--valid 0.1" in done.stderr and not (tmp_path / "m.st").exists()


def test_other_classes(quern, run_quern, tmp_path):
    """A new last layer: the classes of the data, the columns of the model; replay and two ranks."""
    def write(name, classes, columns="a,b,c"):
        rows = (f"{i % 7},{i * 3 % 11},{i % len(classes)},{classes[i % len(classes)]}" for i in range(60))
        (tmp_path / name).write_text("\n".join([f"{columns},y", *rows]) + "\n")
        return ["train", "--data", tmp_path / name, "--label", "y", "--epochs", "2", "--batch", "16", "--grain", "4"]
    start, out, twin = tmp_path / "s", tmp_path / "m", tmp_path / "t"
    run_quern(*write("one.csv", ("cat", "dog", "owl")), "--model", "dense 8 relu; batchnorm; dense 3 softmax", "-o", start)
    two = [*write("two.csv", ("ant", "bee", "cow", "fly")), "--init-from", start]
    assert "for other classes add --new-last" in run_quern(*two, "-o", out, status=1).stderr
    done = run_quern(*two, "--new-last", "-o", out)
    said = done.stdout + done.stderr
    assert 'the last layer, "dense 4 softmax", begins with new weights; the others are those of the model' in said
    shown = run_quern("model", "show", out).stdout
    assert "dense 8 relu; batchnorm none; dense 4 softmax" in shown and '"ant","bee","cow","fly"' in shown
    ranks.run(quern, 2, *two, "--new-last", "--threads", "1", "--quiet", "-o", twin)
    assert recipes.sha256(twin) == recipes.sha256(out)
    assert "identical" in run_quern("replay", out, "--data", tmp_path / "two.csv", "--init-from", start).stdout
    three = [*write("three.csv", ("ant", "bee"), "b,a,c"), "--new-last", "-o", out]
    for more, words in ((["--init-from", start], 'has column 0 "a", the data column 0 "b"'),
                        ([], "no model is named whose other layers could be taken"),
                        (["--init-from", start, "--model", "dense 7 relu; batchnorm; dense 2 softmax"], 'layer 0 of the model')):
        done = run_quern(*three, *more, status=None)
        assert done.returncode != 0 and words in done.stderr, done.stderr


def arrays(path):
    """The bytes of each array of a model file."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    places = {name: own["data_offsets"] for name, own in json.loads(content[8:begin]).items() if name != "__metadata__"}
    return {name: content[begin + first : begin + end] for name, (first, end) in places.items()}


def test_frozen_layers(data, quern, run_quern, tmp_path):
    """They keep their parameters and running averages; replay, two ranks, and what is refused."""
    start, out, twin = tmp_path / "s", tmp_path / "m", tmp_path / "t"
    layers = "dense 12 relu; batchnorm; residual { dense 12 relu dropout 0.5; dense 12 none } relu; dense 10 softmax"
    common = ["train", "--data", data, "--model", layers, "--batch", "64", "--epochs", "1"]
    run_quern(*common, "-o", start)
    frozen = [*common, "--init-from", start, "--seed", "2", "--weight-decay", "0.1", "--clip", "0.5", "--ema", "0.9"]
    done = run_quern(*frozen, "--freeze", "0,1..4", "-o", out)
    assert "layers 0 to 4 do not train" in done.stdout + done.stderr
    before, after = (arrays(path) for path in (start, out))
    changed = {name for name in before if name.startswith("layer") and before[name] != after[name]}
    assert changed == {"layer5.weight", "layer5.bias"}
    ranks.run(quern, 2, *frozen, "--freeze", "0..4", "--threads", "1", "--quiet", "-o", twin)
    assert recipes.sha256(twin) == recipes.sha256(out)
    twin.unlink()
    ranks.run(quern, 2, *frozen, "--freeze", "0..4", "--cache-features", "--threads", "1", "--quiet", "-o", twin)
    assert recipes.sha256(twin) == recipes.sha256(out)
    assert "identical" in run_quern("replay", out, "--data", data, "--init-from", start).stdout
    for what, words in (("0..5", "layers 0 to 5, and one of them must train"), ("1..2", 'name all layers before it, too: "0..1"'),
                        ("0..3,5", "have no parameters"), ("3..1", "does not name"), ("0..99999", "does not name"),
                        ("all", "does not name"), ("0,", "does not name")):
        assert words in run_quern(*frozen, "--freeze", what, "-o", twin, status=2).stderr
    single = run_quern(*frozen, "--freeze", "5,0..1,3", "-o", twin)
    assert "4 of 6 layers do not train" in single.stdout + single.stderr
    after = arrays(twin)
    assert {name for name in before if name.startswith("layer") and before[name] != after[name]} == {
        "layer2.weight", "layer2.bias"}
    assert "need a model" in run_quern(*common, "--freeze", "0..1", "-o", twin, status=2).stderr
    for network, shape, words in (
            ("dense 9 relu; dense 10 softmax", "1x28x28", "leave out --model, so that the layers are those of that model"),
            ("conv 2 3x3; globalpool; dense 10 softmax", "1x14x56", "give images of 28x28 pixels")):
        if network.startswith("conv"):
            run_quern(*common[:3], "--model", network, "--shape", "1x28x28", "--batch", 500, "--epochs", 1, "-o", start)
        done = run_quern(*common[:3], "--model", network, "--shape", shape, "--init-from", start, "-o", twin, status=1)
        assert words in done.stderr and "at --init-from" in done.stderr, done.stderr
    assert "layers 0 to 5, and" in run_quern(*frozen, "--freeze", "99", "-o", twin, status=2).stderr


def little_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (80 << 20, 80 << 20))


def test_outputs_that_are_kept(run_quern, tmp_path):
    """Outputs of several pixels, before and after a dropout that trains; a replay, a resumed training and lbfgs;
    outputs in a file, which is removed; losses, also those of sets that are only evaluated."""
    rng = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", rng.integers(0, 256, (120, 768), dtype=np.uint8))
    np.save(tmp_path / "y.npy", rng.integers(0, 4, 120).astype(np.int32))
    items = ["--data", tmp_path / "x.npy", "--labels", tmp_path / "y.npy", "--shape", "3x16x16"]
    layers = "conv 8 3x3 relu; {} conv 6 3x3 stride 2 relu dropout 0.2; globalpool; dense 16 relu dropout 0.3; dense 4 softmax"
    cache = tmp_path / "cache"
    start, plain, kept = (tmp_path / name for name in "spk")

    def train(out, text, *more, **given):
        done = run_quern("train", *items, "--model", text, "--seed", "4", "--scale", "unit", *more, "-o", out, **given)
        return done.stdout + done.stderr

    def losses(text):
        return re.findall(r"^ +\d+/\d.*?%.*?%.*?%", text, re.M)

    small = layers.format("")
    train(start, small, "--batch", "20", "--epochs", "1")
    for freeze in ("0..0", "0..1", "0..3"):
        tuned = ["--init-from", start, "--freeze", freeze, "--batch", "20", "--valid", "0.2", "--test", tmp_path / "x.npy",
                 "--test-labels", tmp_path / "y.npy"]
        epochs = losses(train(plain, small, *tuned, "--epochs", "3"))
        assert len(epochs) == 3
        more = ["--recompute"] if freeze == "0..1" else []
        assert losses(train(kept, small, *tuned, "--epochs", "3", "--cache-features", *more)) == epochs
        assert recipes.sha256(plain) == recipes.sha256(kept), freeze
    saved = [*tuned, "--cache-features", "--checkpoint", tmp_path / "c", "--checkpoint-every", "3"]
    train(kept, small, *saved, "--epochs", "2")
    train(kept, small, *saved, "--epochs", "3", "--resume")
    assert recipes.sha256(plain) == recipes.sha256(kept)
    assert "identical" in run_quern("replay", plain, *items[:4], "--init-from", start, "--cache-features").stdout
    bare = small.replace(" dropout 0.2", "").replace(" dropout 0.3", "")
    tuned = ["--init-from", start, "--freeze", "0..2", "--optimizer", "lbfgs", "--epochs", "5"]
    train(plain, bare, *tuned)
    train(kept, bare, *tuned, "--cache-features")
    assert recipes.sha256(plain) == recipes.sha256(kept)
    flat = "conv 8 3x3 relu; maxpool 2; dense 4 softmax"  # a dense layer reads the pixels that are kept
    train(tmp_path / "f", flat, "--epochs", "1")
    for out, more in ((plain, []), (kept, ["--cache-features"])):
        train(out, flat, "--init-from", tmp_path / "f", "--freeze", "0..1", "--epochs", "2", *more)
    assert recipes.sha256(plain) == recipes.sha256(kept)
    shared = "conv 4 3x3 relu; concat { dense 5 relu | dense 3 tanh }; dense 4 softmax"
    train(tmp_path / "f", shared, "--epochs", "1")
    done = run_quern("train", *items, "--model", shared, "--init-from", tmp_path / "f", "--freeze", "0..0", "--cache-features",
                     "-o", kept, status=None)
    assert done.returncode != 0 and "several layers read its pixels" in done.stderr
    wide = layers.format("conv 192 1x1 relu;")
    train(start, wide, "--batch", "20", "--epochs", "1")
    tuned = ["--init-from", start, "--freeze", "0..1", "--batch", "20", "--epochs", "1"]
    train(plain, wide, *tuned)
    done = train(kept, wide, *tuned, "--cache-features", env={**os.environ, "QUERN_CACHE": str(cache)}, preexec_fn=little_memory)
    assert "cache folder" in done and recipes.sha256(plain) == recipes.sha256(kept)
    assert not [path for path in cache.rglob("*") if path.is_file()]
    for more, words in (([], "all layers do"), (["--freeze", "0..1", "--augment", "flip"], "differ in each epoch"),
                        (["--freeze", "0..1", "--mixup", "0.2"], "mixed with another one")):
        done = run_quern("train", *items, "--model", wide, "--init-from", start, *more, "--cache-features", "-o", kept, status=2)
        assert words in done.stderr and "--cache-features" in done.stderr


@pytest.mark.parametrize("kind", devices.KINDS)
def test_frozen_layers_on_devices(kind, data, run_quern, tmp_path):
    """Whole blocks that do not train, in floats and integers, outputs that are kept: the bytes are those of
    the processor."""
    names, environment = devices.KINDS[kind]()
    layers = ("conv 6 3x3 stride 9; batchnorm relu; product { globalpool; conv 6 1x1 sigmoid }; "
              "concat { conv 4 3x3 relu; residual { conv 4 3x3 } relu }; globalpool; dense 10 softmax")
    common = ["train", "--data", data, "--shape", "1x28x28", "--model", layers, "--epochs", "1", "--batch", "100",
              "--grain", "16", "--lr", "0.1"]
    start = tmp_path / "s"
    run_quern(*common, "-o", start)
    for arith, cached in (("f32", ["--cache-features"]), ("i14", []), ("i14", ["--cache-features"])):
        own = [*common, "--init-from", start, "--arith", arith, "--freeze", "0..4", "--lr-depth", "0.7", "--ema", "0.8"]
        run_quern(*own, "--devices", "cpu", "-o", tmp_path / "c")
        run_quern(*own, *cached, "--devices", ",".join(names), "-o", tmp_path / "d", env=environment)
        assert recipes.sha256(tmp_path / "c") == recipes.sha256(tmp_path / "d"), (arith, cached)
    assert arrays(tmp_path / "d")["layer1.running_mean"] == arrays(start)["layer1.running_mean"]


def test_memory_options_beside_others(data, run_quern, tmp_path):
    """Parts of a batch and outputs that are computed again change no byte beside mixtures, augmentation, averages
    and frozen layers."""
    start, model = tmp_path / "s", tmp_path / "m"
    layers = ("conv 4 3x3 stride 3; batchnorm relu; residual { conv 4 3x3 relu dropout 0.2; conv 4 3x3 } relu; "
              "globalpool; dense 10 softmax")
    common = ["train", "--data", data, "--shape", "1x28x28", "--model", layers, "--epochs", "1", "--batch", "96",
              "--grain", "8", "--threads", "2", "--devices", "cpu"]
    run_quern(*common, "-o", start)

    def made(*more):
        run_quern(*common, *more, "-o", model)
        return recipes.sha256(model)

    mixed = {word: ["--augment", "pad 2; crop; flip", word, "0.4", "--ema", "0.9"] for word in ("--mixup", "--cutmix")}
    frozen = ["--init-from", start, "--freeze", "0..1", "--weight-decay", "0.01"]
    seen = []
    for more in (*mixed.values(), frozen, [*frozen, *mixed["--mixup"]]):
        seen.append(made(*more))
        for memory in (["--parts", "12"], ["--parts", "3", "--recompute"]):
            assert made(*more, *memory) == seen[-1], (more, memory)
    assert len(set(seen)) == len(seen)


def test_averages_and_checkpoints(data, quern, run_quern, tmp_path):
    """A checkpoint between two steps has weights and averages: the model is that of a run without a stop, also
    where the best epoch is not the last. Without averages it is another model."""
    whole, ended, parted, plain = (tmp_path / name for name in "wepl")
    common = ["train", "--data", data, "--model", "dense 12 relu; batchnorm; dense 10 softmax", "--batch", "64",
              "--valid", "0.3", "--keep", "best", "--seed", "2", "--lr", "0.5", "--optimizer", "adam", "--lr-depth", "0.5"]
    said = run_quern(*common, "--epochs", "3", "-o", plain).stdout
    averaged = [*common, "--ema", "0.97"]
    shown = run_quern(*averaged, "--epochs", "3", "-o", whole).stdout
    assert said != shown and recipes.sha256(plain) != recipes.sha256(whole)
    saving = ["--checkpoint", tmp_path / "k", "--checkpoint-every", "3"]
    run_quern(*averaged, "--epochs", "1", *saving, "-o", ended)
    ranks.run(quern, 2, *averaged, "--epochs", "3", *saving, "--resume", "--threads", "1", "--quiet", "-o", parted)
    assert recipes.sha256(parted) == recipes.sha256(whole)
