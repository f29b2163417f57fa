"""Model texts in files, ready models, and `quern model`."""

import json
import re
import resource
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest

FILE = """\ufeff# two layers, and comments; with "separators" | in { them }

CONV 5 3x2 stride 2x1 tanh;   # the first\r
maxpool 2x1

dense 3 softmax"""
TEXT = "conv 5 3x2 stride 2x1 tanh; maxpool 2x1; dense 3 softmax"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """30 items of 1 x 8 x 6 pixels with three classes, or numbers, in the first column."""
    generator = np.random.default_rng(7)
    path = tmp_path_factory.mktemp("models") / "t.csv"
    rows = [f"{k % 3}," + ",".join(map(str, generator.integers(0, 90, 48))) + "\n" for k in range(30)]
    path.write_text("".join(rows))
    return path


def run(quern, *words, **more):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=60, **more)


def train(quern, table, out, model, *more):
    return run(quern, "train", "--data", table, "--shape", "1x8x6", "--model", model, "--epochs", 1,
               "--devices", "cpu", "--threads", 1, "-o", out, *more)


def recipe(path):
    content = path.read_bytes()
    return json.loads(json.loads(content[8:8 + int.from_bytes(content[:8], "little")])
                      ["__metadata__"]["recipe"])


def test_a_file_gives_the_bytes_of_its_text(quern, table, tmp_path):
    (tmp_path / "net.txt").write_text(FILE, encoding="utf-8", newline="")
    for name, model in (("a", f"@{tmp_path}/net.txt"), ("b", TEXT), ("c", TEXT.replace("; ", "\n"))):
        done = train(quern, table, tmp_path / name, model)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert recipe(tmp_path / "a")["model"] == TEXT
    done = run(quern, "plan", "--model", f"@{tmp_path}/net.txt", "--shape", "1x8x6", "--team", "host(cpu 9k)")
    assert done.stdout.startswith(f"{TEXT}: "), done.stderr


@pytest.mark.parametrize("content, said", [
    (b"dense 9 relu\n# c\ndense 3 sofmax # d\n", ["n.txt, line 3, layer 1, column 9:", "dense 3 sofmax"]),
    (b"conv 3 2\nmaxpool\n\n", ["n.txt, line 2, layer 1, column 8:"]),
    (b"conv 3 2x2\n\nmaxpool 2; conv 3 9x9 pad none\ndense 3 softmax",
     ["n.txt, line 3, layer 2, column 12:", "does not fit into 3x2 pixels"]),
    (b"\n# nothing\n", ["the model has no layers"]),
    (b"dense\0 3", ["the file is not a model text", "byte 5"]),
    (b"#" * (1 << 20) + b"\n", ["at most 1048576 bytes"]),
])
def test_faults_of_a_file_name_its_line(quern, table, tmp_path, content, said):
    (tmp_path / "n.txt").write_bytes(content)
    done = run(quern, "train", "--data", table, "--shape", "1x8x6", "--model", "@n.txt", "-o", "m",
               cwd=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) > 2
    assert all(words in done.stderr for words in said), done.stderr


@pytest.mark.parametrize("model, said", [
    ("@nothing.txt", "cannot open nothing.txt"), ("@.", "it is a folder"), ("@", "no file is named"),
    ("lenat", 'did you mean the ready model "lenet"?'), ("lenet; dense 3", 'this is not a layer: "lenet"'),
])
def test_what_is_no_file_and_no_model(quern, table, tmp_path, model, said):
    for command in (["train", "--data", table, "-o", "m"], ["plan", "--team", "host(cpu 9k)"], ["devices"]):
        done = run(quern, *command, "--model", model, cwd=tmp_path)
        assert done.returncode != 0 and said in done.stderr and len(done.stderr.splitlines()) > 1
        assert done.stdout == "", "devices are measured before the model is read"


def test_a_word_that_is_no_layer(quern, tmp_path):
    """It may have been meant as the name of a model or of a file."""
    (tmp_path / "net.txt").write_text("dense 2\n")
    ready = '"quern model list" names the ready models; @FILE'
    for word, said in (("rnn", "there are: dense, conv,"), ("rnn", ready), (" lenat\n", ready),
                       ("net.txt", "if you mean the file, write @net.txt\n")):
        done = run(quern, "model", "show", word, "--input", 5, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    for word in ("rnn; dense 2", "dense"):
        assert "@FILE" not in run(quern, "model", "show", word, "--input", 5, cwd=tmp_path).stderr


def test_a_ready_model_follows_the_labels(quern, table, tmp_path):
    two = tmp_path / "two.csv"
    two.write_text("".join(line for line in table.read_text().splitlines(True) if line[0] != "2"))
    for data, more, last in ((table, [], "dense 3 softmax"), (two, ["--loss", "binary"], "dense 1 sigmoid"),
                             (table, ["--task", "regress", "--lr", "1e-5"], "dense 1 none")):
        done = train(quern, data, tmp_path / "m", "LeNet", *more)
        assert done.returncode == 0, done.stderr
        text = "conv 32 5x5 relu; maxpool 2x2; conv 64 5x5 relu; maxpool 2x2; dense 512 relu; "
        assert recipe(tmp_path / "m")["model"] == text + last
        assert "\nmodel   lenet (" in done.stderr
    plan = ["plan", "--model", "LeNet", "--classes", 7, "--team", "host(cpu 9k)"]
    assert run(quern, *plan).stdout.startswith("lenet: ")
    assert run(quern, *plan, "--verbose").stdout.startswith(f"{text}dense 7 softmax: ")
    done = run(quern, "train", "--data", table, "--model", "lenet", "-o", tmp_path / "n")
    assert "the data has no pixels" in done.stderr and "--shape" in done.stderr


def events(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_ready_models_are_listed(quern):
    models = {m["name"]: m for m in events(run(quern, "model", "list", "--json"))}
    lenet = [28 * 28 * 32 * 25, 14 * 14 * 64 * 25 * 32, 64 * 7 * 7 * 512, 512 * 10]
    pools = 4 * (14 * 14 * 32 + 7 * 7 * 64)
    assert models["lenet"]["flops"] == 2 * sum(lenet) + pools
    assert models["lenet"]["training_flops"] == 6 * sum(lenet) + 2 * pools - 2 * lenet[0]
    assert models["lenet"]["parameters"] == 26 * 32 + 801 * 64 + 3137 * 512 + 5130
    shown = run(quern, "model", "list").stdout
    assert all(name in shown and m["input"] in shown for name, m in models.items())
    for name, m in models.items():  # the text is what the name stands for
        assert events(run(quern, "model", "show", name, "--json"))[-1] == events(
            run(quern, "model", "show", m["text"], "--input", m["input"], "--json"))[-1]


def test_layers_are_shown(quern):
    text = "conv 6 3x3 stride 2 pad none relu; avgpool 3; dense 4 tanh; dense 2 softmax"
    conv, pool, first, last, network = events(run(quern, "model", "show", text, "--input", "3x20x16", "--json"))
    assert (conv["output"], pool["output"], first["output"]) == ([6, 9, 7], [6, 3, 2], [4, 1, 1])
    assert [layer["parameters"] for layer in (conv, pool, first, last)] == [6 * 28, 0, 37 * 4, 10]
    assert [layer["flops"] for layer in (conv, pool, first, last)] == [2 * 63 * 6 * 27, 9 * 36, 2 * 36 * 4, 16]
    assert [layer["source"] for layer in (conv, pool, first, last)] == [-1, 0, 1, 2]
    assert network["parameters"] == 326 and network["activation_bytes"] == 4 * (378 + 36 + 4 + 2)
    done = run(quern, "model", "show", "conv 3 3; dense 2", "--input", 12)
    assert "has no pixels" in done.stderr and "--input 3x32x32" in done.stderr
    assert "--input" in run(quern, "model", "show", "dense 2").stderr
    for many in ("4097x256x256", "4194304x2097152x2097152"):  # the second is 2^64
        done = run(quern, "model", "show", "dense 2", "--input", many)
        assert f"an item of {many} has more than 268435456 values\n  at --input\n" in done.stderr


def test_blocks_are_shown(quern, tmp_path):
    """On several lines, with the layers that each one reads; errors name the layer of the list."""
    text = ("conv 4 3 relu\nresidual {\n  conv 8 3 stride 2 relu;\n  conv 8 3 # none\n| conv 8 1 stride 2;\n"
            "} relu\nresidual { maxpool 1 }\ndense 2")
    *layers, network = events(run(quern, "model", "show", text, "--input", "1x6x6", "--json"))
    assert network["text"] == ("conv 4 3x3 relu; residual { conv 8 3x3 stride 2 relu; conv 8 3x3 none | conv 8 1x1 "
                               "stride 2 none } relu; residual { maxpool 1x1 } none; dense 2 none")
    assert [(layer["source"], layer.get("second")) for layer in layers] == [
        (-1, None), (0, None), (1, None), (0, None), (2, 3), (4, None), (5, 4), (6, None)]
    assert layers[4]["flops"] == layers[4]["training_flops"] == 8 * 3 * 3
    done = run(quern, "model", "show", text.replace("conv 8 1 stride", "conv 7 1 stride"), "--input", "1x6x6")
    assert "different shapes: 8x3x3 of layer 2 and 7x3x3 of layer 3\n  at model, line 6, layer 4" in done.stderr
    done = run(quern, "model", "show", text.replace("maxpool 1", "maxpool 9"), "--input", "1x6x6")
    assert "at model, line 7, layer 5" in done.stderr


def test_the_recipe_of_many_columns_is_short(quern, tmp_path):
    """Columns of images have no names, and a table may have thousands. --json has the whole recipe."""
    names = [f'a[{k}], "b"' for k in range(41)]
    quoted = [name.replace('"', '""') for name in names]
    (tmp_path / "t.csv").write_text(",".join(f'"{name}"' for name in [*quoted, "y"]) + "\n"
                                    + "".join("1," * 41 + f"{k}\n" for k in "abab"))
    (tmp_path / "n.csv").write_text("".join(f"{k}{',2' * 784}\n" for k in "abab"))
    for data, label, listed in (("t.csv", "y", json.dumps(names[:40], separators=(",", ":"))[:-1] + ", and 1 more]"),
                                ("n.csv", 1, "[784 x null]")):
        run(quern, "train", "--data", tmp_path / data, "--label", label, "--model", "dense 2 softmax", "--epochs", 1, "-o",
            tmp_path / "m")
        recipe = json.loads(run(quern, "model", "show", tmp_path / "m", "--json").stdout)["recipe"]
        shown = run(quern, "model", "show", tmp_path / "m").stdout.splitlines()[-1]
        head, features = recipe.split('"features":[')
        assert shown == f'  recipe     {head}"features":{listed}{features[features.index("]}") + 1:]}', shown


def test_a_network_is_drawn(quern, tmp_path):
    """A box for each layer below the other, with its text inside; numbers beside it; two schemes of colours."""
    done = run(quern, "model", "show", "lenet", "--svg", tmp_path / "net.svg")
    assert done.returncode == 0, done.stderr
    root = ElementTree.parse(tmp_path / "net.svg").getroot()
    ns = "{http://www.w3.org/2000/svg}"
    boxes = [{k: float(e.get(k)) for k in ("x", "y", "width", "height")} for e in root.findall(f"{ns}rect")][1:]
    assert len(boxes) == 1 + 6
    assert all(a["y"] + a["height"] < b["y"] for a, b in zip(boxes, boxes[1:]))
    texts = [(float(e.get("x")), float(e.get("y")), e.text) for e in root.findall(f"{ns}text")]
    for box, words in zip(boxes, ["input", "conv 32 5x5 relu", "maxpool 2x2", "conv 64 5x5 relu", "maxpool 2x2",
                                  "dense 512 relu", "dense 10 softmax"]):
        inside = [t for x, y, t in texts if box["x"] < x < box["x"] + box["width"] and
                  box["y"] < y < box["y"] + box["height"]]
        assert inside[0] == words and len(inside) == 2
    assert {"1x28x28", "32x14x14", "1,606,144", "24.584"} <= {t for _, _, t in texts}
    assert all(b["x"] + b["width"] < float(root.get("width")) for b in boxes)
    assert "prefers-color-scheme: dark" in root.find(f"{ns}style").text
    done = run(quern, "model", "show", "dense 3", "--input", 4, "--svg", tmp_path / "none" / "net.svg")
    assert done.returncode != 0 and "net.svg" in done.stderr


def test_a_training_that_does_not_fit_is_refused(quern, table, tmp_path):
    """Memory is counted before any is taken; the parts that the message names do fit. Without the option
    they are taken, with a note."""
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (144 << 20, 144 << 20))
    words = ["--model", "conv 16 3x3 relu; dense 3 softmax", "--shape", "1x32x32", "--batch", 1024]
    big = tmp_path / "big.npz"
    np.savez(big, x=np.zeros((1024, 32, 32), np.uint8), y=np.arange(1024) % 3)
    train = ["train", "--data", big, *words, "--epochs", 1]
    started = run(quern, *train, "--parts", 1, "-o", tmp_path / "a", preexec_fn=limited)
    assert started.returncode == 1, started.stderr
    assert "memory beside the data" in started.stderr and "for a batch of 1024 items" in started.stderr
    assert "at --parts\n" in started.stderr and not (tmp_path / "a").exists()
    fits = re.search(r"with --parts (\d+) it fits", started.stderr)[1]
    done = run(quern, *train, "--parts", fits, "-o", tmp_path / "a", "--json", preexec_fn=limited)
    assert done.returncode == 0, done.stderr
    start = json.loads(done.stdout.splitlines()[0])
    assert 0 < start["memory_batch_bytes"] < start["memory_bytes"] < 1 << 30
    planned = run(quern, "plan", "--json", "--items", 1024, "--classes", 3, *words, "--parts", fits,
                  "--team", "host(cpu 9k)")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout.splitlines()[-1])["memory_bytes"] == start["memory_bytes"]
    by_itself = run(quern, *train, "-o", tmp_path / "b", preexec_fn=limited)
    assert by_itself.returncode == 0 and f"(--parts {fits})" in by_itself.stderr
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
