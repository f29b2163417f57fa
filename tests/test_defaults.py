"""The defaults: docs/exactness.md 11.4, the help and the recipe of a model agree."""

import json
import math
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent
# Keys of a recipe whose option has another name; those that come from the data have none.
OPTION = {"weight_decay": "weight-decay", "lr_step": "lr-step", "lr_gamma": "lr-gamma"}
NO_OPTION = {"items", "features", "valid"}


def documented():
    """Key to text of the default, for the keys of 11.4 that `quern train` has an option for."""
    section = (ROOT / "docs/exactness.md").read_text().split("\n11.4 ")[1]
    section = re.split(r"\n(?:## |11\.5 )", section)[0]
    rows = [re.split(r"\s*\|\s*", line)[1:4] for line in section.splitlines() if line.startswith("| `")]
    table = {}
    for row in rows:
        for k, key in enumerate(re.findall(r"`(\w+)`", row[0])):
            table[key] = row[2].split(", ")[k] if "`, `" in row[0] else row[2]
    return {k: v for k, v in table.items() if k not in NO_OPTION}


def helped(quern, *command):
    """Option to text of its default in the help of a command."""
    text = subprocess.run([quern, *command, "--help"], capture_output=True, text=True, check=True).stdout
    options = {}
    for m in re.finditer(r"^  (?:-\w,| {0,3}) ?--([\w-]+)(.*(?:\n {27}.*)*)", text, re.M):
        default = re.search(r"\[([^]]*)\]$", " ".join(m.group(2).split()))
        if default:
            options[m.group(1)] = default.group(1)
    return options


def recipe(quern, tmp_path, *args):
    model = tmp_path / "m"
    subprocess.run([quern, "train", "-o", model, "--quiet", *args], check=True, capture_output=True)
    with open(model, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    return json.loads(header["__metadata__"]["recipe"])


@pytest.fixture
def data(tmp_path):
    (tmp_path / "u8.csv").write_text("0,1,2\n1,3,255\n" * 8)
    (tmp_path / "f32.csv").write_text("0,0.5,2\n1,3,-7\n" * 8)
    (tmp_path / "small.csv").write_text("0,1,200,0\n1,3,99,1\n" * 8)
    (tmp_path / "real.csv").write_text("0.5,1,200\n1,3,99\n" * 8)
    return {t: ["--data", tmp_path / f"{t}.csv", "--threads", "1"]
            for t in ("u8", "f32", "small", "real")}


def test_the_table_is_read():
    table = documented()
    assert len(table) == 21 and table["batch"] == "64; a table: below" and table["beta2"] == "0.999", table


def test_the_help_says_what_a_recipe_holds(quern, tmp_path, data):
    """Those keys that a training without options uses; the others are below."""
    made, help_of = recipe(quern, tmp_path, *data["u8"]), helped(quern, "train")
    for key in ("arith", "init", "loss", "optimizer", "weight_decay", "lr", "schedule", "warmup",
                "batch", "grain", "epochs", "seed", "unit", "momentum"):
        told = help_of[OPTION.get(key, key)].split(";")[0]
        assert told == str(made[key]), (key, told, made[key])
    classes, real, hidden = re.fullmatch("(.*); real labels: (.*); tables: (.*?) and the last layer; .*texts.*",
                                         help_of["model"]).groups()
    assert classes.replace("CLASSES", "2") == made["model"]
    made = recipe(quern, tmp_path, *data["real"])
    assert made["task"] == "regress" and made["model"] == real
    for key in ("loss", "optimizer"):
        assert help_of[key].split("; real labels: ")[1].split(";")[0] == made[key]
    assert help_of["lr"].split("; real labels: ")[1].split(";")[0] == str(made["lr"])
    made = recipe(quern, tmp_path, *data["f32"])
    assert made["model"] == f"{hidden}; dense 2 softmax"
    assert help_of["optimizer"].split("; tables: ")[1].split(";")[0] == made["optimizer"]
    for key in ("lr", "weight_decay", "schedule"):
        told = help_of[OPTION.get(key, key)].split("; tables without --optimizer: ")[1]
        assert told.split(",")[0] == str(made[key]), (key, told)
    few, most = re.search("tables: (\\d+) to (\\d+),", help_of["batch"]).groups()
    assert str(made["batch"]) == few and most == "256"
    steps, most = re.search("as many as give (\\d+) steps, 10 to (\\d+);", help_of["epochs"]).groups()
    assert made["epochs"] == min(int(most), int(steps) // 2)


def test_the_help_says_what_the_document_says(quern):
    help_of = helped(quern, "train")
    for key, text in documented().items():
        if key in ("scale", "model", "optimizer"):
            continue
        told = help_of[OPTION.get(key, key)]
        first = re.split(r"[;:]", text.replace("`", ""))[0]
        assert told.split(";")[0] in (first, first.replace("e-", "e-0")), (key, told, text)


@pytest.mark.parametrize("option, values, key", [
    ("optimizer", ["momentum"], "momentum"), ("optimizer", ["adam", "adamw"], "lr")])
def test_defaults_by_optimiser(quern, tmp_path, data, option, values, key):
    usual, special = helped(quern, "train")[key].split("; real")[0].split("; ")
    names, number = special.removeprefix(f"--{option} ").split(": ")
    assert names.split(", ") == values
    for name in ("sgd", "momentum", "adam", "adamw"):
        made = recipe(quern, tmp_path, *data["u8"], "--epochs", "1", f"--{option}", name)
        assert str(made[key]) == (number if name in values else usual), (name, made)


def test_numbers_of_adam_and_of_the_schedule(quern, tmp_path, data):
    help_of = helped(quern, "train")
    made = recipe(quern, tmp_path, *data["u8"], "--optimizer", "adam", "--schedule", "step")
    for key in ("beta1", "beta2", "epsilon", "lr_step", "lr_gamma"):
        assert str(made[key]) == help_of[OPTION.get(key, key)]


def test_scale_by_data_and_arithmetic(quern, tmp_path, data):
    usual, special, other = re.fullmatch(
        r"images: (\w+), --arith i14, i21: (\w+); other data: (\w+); texts alone: none",
        helped(quern, "train")["scale"]).groups()
    for arith in ("f32", "i7", "i14", "i21"):
        for kind in ("u8", "f32", "small"):
            made = recipe(quern, tmp_path, *data[kind], "--epochs", "1", "--arith", arith)
            images = special if arith in ("i14", "i21") else usual
            assert made["scale"] == (images if kind == "u8" else other), (arith, kind)


@pytest.mark.parametrize("command", ["plan", "devices", "predict", "replay"])
def test_other_commands_have_the_same_defaults(quern, command):
    train, other = helped(quern, "train"), helped(quern, command)
    shared = [o for o in ("model", "epochs", "batch", "optimizer", "arith", "grain", "device-timeout",
                          "meet-timeout", "rank-timeout") if o in other]
    assert len(shared) >= 3
    for option in shared:
        assert other[option] == train[option], option


def test_plan_counts_with_the_defaults_of_train(quern, tmp_path):
    """The plan's own numbers: batch, grain and epochs stand in its first lines."""
    train = helped(quern, "train")
    text = subprocess.run([quern, "plan", "--team", "host(cpu 60k)", "--items", "6400"], check=True,
                          capture_output=True, text=True).stdout
    batch, grain, epochs = (int(train[key].split(";")[0]) for key in ("batch", "grain", "epochs"))
    assert text.startswith(train["model"].split("; real")[0].replace("CLASSES", "10"))
    assert f"{epochs} epochs of 6,400 items in batches of {batch}: " in text
    assert f"of {batch // grain} grain" in text


@pytest.mark.parametrize("shape, grain", [("3x64x64", 32), ("1x64x65", 8), ("1x1x65536", 8), ("1x257x256", 2)])
def test_grain_of_images(shape, grain, quern, tmp_path):
    """Without data the plan has it, with data the recipe; a network on features has 32."""
    said = subprocess.run([quern, "plan", "--team", "host(cpu 60k)", "--items", "64", "--model",
                           "avgpool 1x64; dense 10 softmax", "--shape", shape], check=True, capture_output=True, text=True)
    assert f" steps of {64 // grain} grain" in said.stdout
    size = math.prod(int(n) for n in shape.split("x"))
    cell = ",".join(["7"] * size)
    (tmp_path / "x.csv").write_text(f"0,{cell}\n1,{cell}\n")
    common = ["--data", tmp_path / "x.csv", "--epochs", "1"]
    made = {"pixels": recipe(quern, tmp_path, *common, "--model", "avgpool 1x64; dense 2 softmax", "--shape", shape),
            "features": recipe(quern, tmp_path, *common, "--model", "dense 2 softmax")}
    assert {name: made[name]["grain"] for name in made} == {"pixels": grain, "features": 32}


@pytest.mark.parametrize("label, more", [("kind", []), ("kind", ["--loss", "binary"]),
                                         ("size", ["--valid", "0.5"])])
def test_plan_and_search_take_those_of_a_table(quern, tmp_path, label, more):
    """One rule for all: a plan of a table counts what its training does, and a search trains all its
    folds by the whole table."""
    rows = "".join(f"{i * 0.37},{i % 7},{'ab'[i % 3 == 0]},{i * 0.1}\n" for i in range(300))
    (tmp_path / "t.csv").write_text("x,y,kind,size\n" + rows)
    train = ["--data", tmp_path / "t.csv", "--label", label, "--threads", "1", *more]
    made = recipe(quern, tmp_path, *train)
    assert (made["batch"], made["epochs"]) == (16, 53)
    text = subprocess.run([quern, "plan", "--team", "host(cpu 60k)", *train], check=True,
                          capture_output=True, text=True).stdout
    items = 150 if label == "size" else 300
    assert text.startswith(f"{made['model']}: ")
    assert f"53 epochs of {items} items in batches of 16: " in text, text
    if label == "kind" and not more:
        said = ["--epochs", "53", "--batch", "16", "--weight-decay", "1", "--lr", "0.01",
                "--optimizer", "adamw", "--schedule", "cosine"]
        tables = []
        for out, options in (("usual", []), ("said", said)):
            subprocess.run([quern, "search", *train, "--grid", "seed 1", "--folds", "2", "--run-dir",
                            tmp_path / out, *options], capture_output=True, check=True)
            tables.append("".join(p.read_text() for p in (tmp_path / out).glob("*.csv")))
        models = [re.findall("[0-9a-f]{64},\"", table) for table in tables]
        assert len(models[0]) == 2 and models[0] == models[1], tables
