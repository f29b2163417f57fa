"""`quern report` and `quern train --report`: the page is read with the parsers of Python's standard library,
its numbers are compared with `quern predict`, its images with the data."""

import csv
import html
import html.parser
import json
import os
import random
import shlex
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from machine import LONG

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))

from order import permutation  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "link", "br", "img"}
EVIL = ["<script>alert(1)</script>", "a&amp;b \"q\" onload='x'", "it's ]]> \u00e9"]
COLUMNS = ["<img src=x onerror=alert(1)>", "&lt;b&gt;", "city\"><svg/onload=a>"]


def run(quern, *words, **more):
    return subprocess.run([quern, *map(str, words)], capture_output=True, text=True, timeout=120, **more)


def made(quern, *words, **more):
    done = run(quern, *words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Reader(html.parser.HTMLParser):
    """Checks what every page has to keep, and collects elements and texts."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.texts = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.elements.append((tag, given))
        assert tag not in ("script", "iframe", "object", "embed", "form", "base"), tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name in ("src", "href", "action", "data", "poster", "srcset"):
                assert value.startswith("data:"), value[:80]
        if tag == "th":
            assert given.get("scope") in ("row", "col")
        if tag == "img":
            assert given["alt"]
        if tag == "svg":
            assert given["role"] == "img" and given["aria-label"] and given["viewbox"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def read(path):
    """The page's elements and texts, and its tree: the page is well-formed XML, too."""
    text = Path(path).read_text()
    page = Reader(text)
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.elements
    assert "prefers-color-scheme:dark" in text and "@import" not in text and "url(" not in text
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert len(ids) == len(set(ids))
    assert all(given["aria-labelledby"] in ids for tag, given in page.elements if tag == "section")
    return page, ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))


def section(tree, name):
    return next(s for s in tree.iter("section") if s.get("aria-labelledby") == name)


def table(element):
    return [["".join(cell.itertext()) for cell in row] for row in element.iter("tr")]


def pixels(source):
    """Height, width, channels and the bytes of a PNG file in a data URL, whose rows are not filtered."""
    import base64
    head, body = source.split(",", 1)
    assert head == "data:image/png;base64"
    png = base64.b64decode(body, validate=True)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        parts[kind] = parts.get(kind, b"") + png[at + 8:at + 8 + size]
        assert zlib.crc32(png[at + 4:at + 8 + size]) == int.from_bytes(png[at + 8 + size:at + 12 + size], "big")
        at += size + 12
    width, height, depth, colour = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    channels = {0: 1, 2: 3}[colour]
    raw, stride = zlib.decompress(parts[b"IDAT"]), width * channels + 1
    assert depth == 8 and all(raw[r * stride] == 0 for r in range(height))
    return height, width, channels, b"".join(raw[r * stride + 1:(r + 1) * stride] for r in range(height))


@pytest.fixture(scope="module")
def named(quern, tmp_path_factory):
    """The folder of a run on a table whose names are what a page must not obey."""
    folder = tmp_path_factory.mktemp("report")
    draw = random.Random(1)
    for name, items in (("train.csv", 120), ("test.csv", 80)):
        with open(folder / name, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["kind", *COLUMNS])
            for _ in range(items):
                k = draw.randrange(3)
                out.writerow([EVIL[k], round(2 * k + draw.gauss(0, 1), 3), round(draw.gauss(0, 1), 3),
                              draw.choice(["<b>Bern</b>", "K\u00f6ln", "&"])])
    made(quern, "train", "--data", folder / "train.csv", f"--test={folder / 'test.csv'}", "--model", "dense 3 softmax", "--epochs", 4,
         "--devices", "cpu", "--threads", 1, "--run-dir", "a<b>&\"c", "--trace", "trace.json", "--report", "own.html", "--plots", "plots",
         "--quiet", "-o", "model", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def second(quern, named):
    """Another run in the same folder."""
    made(quern, "train", "--data", "train.csv", "--valid", "test.csv", "--model", "dense 3 softmax", "--epochs", 3, "--lr", 0.5,
         "--devices", "cpu", "--threads", 1, "--run-dir", "second", "--quiet", "-o", "other", cwd=named)


@pytest.fixture(scope="module")
def predicted(quern, named):
    made(quern, "predict", "model", "--data", "test.csv", "-o", "p.csv", "--outputs", "--quiet", cwd=named)
    return list(csv.DictReader(open(named / "p.csv")))


def test_a_page_obeys_no_name(quern, named, predicted):
    page, tree = read(named / "own.html")
    classes = section(tree, "classes")
    assert table(classes)[0] == ["label", *sorted(EVIL)]
    wrong = [row for row in predicted if row["label"] != row["prediction"]]
    assert len(wrong) > 3
    figures = list(section(tree, "mistakes").iter("figure"))
    assert len(figures) == min(24, len(wrong))
    assert [row[0] for row in table(figures[0])] == COLUMNS
    weights = table(section(tree, "weights"))
    assert weights[0] == ["input", *sorted(EVIL)] and f"{COLUMNS[2]} = <b>Bern</b>" in [row[0] for row in weights]
    made(quern, "report", "a<b>&\"c", "-o", "later.html", "--quiet", cwd=named)
    assert "".join(read(named / "later.html")[1].find(".//h1").itertext()) == "Run a<b>&\"c"


def test_numbers_of_classes_and_mistakes(named, predicted):
    _, tree = read(named / "own.html")
    names = sorted(EVIL)
    matrix, parts = table(section(tree, "classes").findall(".//table")[0]), section(tree, "classes").findall(".//table")[1]
    for label in names:
        row = next(r for r in matrix if r[0] == label)
        assert [int(n) for n in row[1:]] == [sum(p["label"] == label and p["prediction"] == c for p in predicted)
                                             for c in names]
    for name, items, guesses, precision, recall, f1 in table(parts)[1:]:
        right = sum(p["label"] == name == p["prediction"] for p in predicted)
        assert int(items) == sum(p["label"] == name for p in predicted)
        assert int(guesses) == sum(p["prediction"] == name for p in predicted)
        for shown, part, whole in ((precision, right, int(guesses)), (recall, right, int(items)),
                                   (f1, 2 * right, int(items) + int(guesses))):
            assert shown == (f"{100 * part / whole:.2f} %" if whole else "")
    wrong = [p for p in predicted if p["label"] != p["prediction"]]
    own = {p["item"]: float(p[f"p{names.index(p['label'])}"]) for p in predicted}
    wrong.sort(key=lambda p: (own[p["item"]], int(p["item"])))
    shown = ["".join(f.find("figcaption").itertext()).strip() for f in section(tree, "mistakes").iter("figure")]
    assert shown == [f"{p['label']} ({own[p['item']]:.3g}), predicted {p['prediction']} ({float(p['score']):.3g})"
                     f"item {p['item']}" for p in wrong[:24]]


def test_recipe_scores_and_curves(named):
    _, tree = read(named / "own.html")
    record = json.loads((named / "a<b>&\"c" / "run.json").read_text())
    rows = dict(r for r in table(section(tree, "recipe")) if len(r) == 2)
    assert rows["epochs"] == "4" and rows["model"] == "dense 3 softmax" and rows["data"] == record["recipe"]["data"]
    assert record["command"][0] in "".join(section(tree, "recipe").itertext())
    words = shlex.split(record["command"][0])  # as they were given, but for the folder that others do not have
    assert words[2:7] == ["--data", "train.csv", "--test=test.csv", "--model", "dense 3 softmax"]
    assert "weight_decay" in rows and "momentum" not in rows and "0" not in [v for k, v in rows.items() if k != "seed"]
    text = open(named / "own.html", encoding="utf-8").read()
    found = [text.index(f">{title}</h2>") for title in ("Result", "Curves", "Recipe")]
    assert found == sorted(found)
    assert record["model"] in "".join(section(tree, "result").itertext())
    scores = {r[0]: r for r in table(section(tree, "result"))}
    assert scores["test"][1:] == ["80", f"{100 * record['test']['correct'] / 80:.2f} %", f"{record['test']['loss']:.6g}"]
    assert sum(map(sum, record["confusion"])) == 80
    shown = {r[0]: float(r[1]) for r in table(section(tree, "evaluation"))}
    for key, title in (("auc", "ROC AUC"), ("log_loss", "log loss"), ("f1", "F1, mean of the classes")):
        assert shown[title] == pytest.approx(record["evaluation"]["test"][key], rel=1e-5)
    assert sum(record["confusion"][i][i] for i in range(3)) == record["test"]["correct"]
    metrics = list(csv.reader(open(named / "a<b>&\"c" / "metrics.csv")))
    numbers = table(section(tree, "curves"))
    assert [len(r) for r in numbers] == [len(metrics[0])] * 5
    column = metrics[0].index("train_loss")
    assert [float(r[column]) for r in numbers[1:]] == pytest.approx([float(r[column]) for r in metrics[1:]], rel=1e-5)
    losses = next(s for s in section(tree, "curves").iter("svg") if s.get("aria-label") == "Loss")
    paths = [p for p in losses.iter("path") if "k0" in p.get("class", "")]
    points = [tuple(map(float, p.split())) for p in paths[0].get("d")[1:].split("L")]
    assert len(points) == 4 and points[0][0] < points[-1][0]
    assert (points[0][1] < points[-1][1]) == (float(metrics[1][column]) > float(metrics[4][column]))


def test_a_timeline_shows_the_spans_of_the_trace(quern, named):
    events = json.loads((named / "trace.json").read_text())["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    begin, end = min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans)
    drawn = {}
    for element in ElementTree.parse(named / "plots" / "timeline.svg").getroot().iter():
        if element.tag == SVG + "text" and element.get("class") is None:
            name = element.text
        elif element.tag == SVG + "rect" and element.get("class") == "b":
            drawn[name] = drawn.get(name, 0) + float(element.get("width")) * float(element.get("opacity")) / 340
    assert set(drawn) == {rows[e["pid"], e["tid"]] for e in spans} and "cpu" in drawn
    cpu = sum(e["dur"] for e in spans if rows[e["pid"], e["tid"]] == "cpu") / (end - begin)
    assert drawn["cpu"] == pytest.approx(cpu, abs=0.1)
    (named / "bad.json").write_text("[1, 2")
    done = run(quern, "report", "a<b>&\"c", "--trace", "bad.json", "-o", "t.html", cwd=named)
    assert done.returncode == 1 and "not a trace" in done.stderr and not (named / "t.html").exists()


def test_plots_are_pictures_of_their_own(named):
    found = sorted(p.name for p in (named / "plots").iterdir())
    assert found == ["accuracy.svg", "calibration.svg", "confusion.svg", "learning-rate.svg", "loss.svg", "timeline.svg", "workers-items.svg",
                     "workers-time.svg"]
    for name in found:
        root = ElementTree.parse(named / "plots" / name).getroot()
        assert root.tag == SVG + "svg" and root.find(f".//{SVG}title").text and root.get("aria-label")
        width, height = float(root.get("width")), float(root.get("height"))
        for text in root.iter(SVG + "text"):
            if text.get("transform") is None:
                assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height


def test_images_are_those_of_the_data(quern, tmp_path):
    made(quern, "data", "synth", "digits", "--items", 160, "-o", "d.csv", cwd=tmp_path)
    made(quern, "train", "--data", "d.csv", "--shape", "28x28", "--model", "dense 10 softmax", "--epochs", 1, "--devices", "cpu",
         "--valid", 0.4, "--threads", 1, "--report", "r.html", "--quiet", "-o", "m", cwd=tmp_path)
    _, tree = read(tmp_path / "r.html")
    rows = list(csv.reader(open(tmp_path / "d.csv")))[1:]
    text = "".join(section(tree, "mistakes").itertext())
    assert "of 64 predictions are wrong, of the validation items" in text
    images = list(section(tree, "mistakes").iter("img"))
    assert len(images) > 5
    values = [bytes(map(int, r[1:])) for r in rows]
    for image in images:
        height, width, channels, got = pixels(image.get("src"))
        assert (height, width, channels) == (28, 28, 1)
        assert image.get("alt").split(": ")[1][0] == rows[values.index(got)][0]
    weights = list(section(tree, "weights").iter("img"))
    assert len(weights) == 10 and pixels(weights[0].get("src"))[:3] == (28, 28, 3)


def test_importance_is_what_shuffling_costs(quern, named, predicted):
    made(quern, "report", "a<b>&\"c", "--model", "model", "--data", "test.csv", "--importance", 1, "--seed", 5, "-o",
         "i.html", "--quiet", cwd=named)
    _, tree = read(named / "i.html")
    texts = ["".join(t.itertext()) for t in section(tree, "columns").iter("text")][1:]
    shown = dict(zip(texts[::2], texts[1::2]))
    rows = list(csv.reader(open(named / "test.csv")))
    order = permutation(5, len(rows) - 1, 7, 0)
    whole = sum(p["label"] == p["prediction"] for p in predicted)
    for column in (1, 2):
        with open(named / "shuffled.csv", "w", newline="") as file:
            csv.writer(file).writerows([rows[0], *([*row[:column], rows[1 + int(order[i])][column], *row[column + 1:]]
                                                   for i, row in enumerate(rows[1:]))])
        made(quern, "predict", "model", "--data", "shuffled.csv", "-o", "s.csv", "--quiet", cwd=named)
        right = sum(p["label"] == p["prediction"] for p in csv.DictReader(open(named / "s.csv")))
        name = COLUMNS[column - 1]
        assert shown[name] == f"{100 * (whole - right) / 80:.2f} %"
    assert float(shown[COLUMNS[0]].split()[0]) > 10


def test_a_comparison_shows_what_differs(quern, named, second):
    made(quern, "report", "a<b>&\"c", "second", "-o", "both.html", "--plots", "both", "--quiet", cwd=named)
    _, tree = read(named / "both.html")
    rows = {r[0]: r[1:] for r in table(section(tree, "recipe"))}
    assert rows["lr"] == ["0.01", "0.5"] and rows["epochs"] == ["4", "3"] and "batch" not in rows
    results = table(section(tree, "result"))
    assert [r[0] for r in results[1:]] == ["a<b>&\"c", "second"] and [r[3] for r in results[1:]] == ["test", "validation"]
    training = next(s for s in tree.iter("svg") if s.get("aria-label") == "Loss, training")
    assert [t.text for t in training.iter("text")][-2:] == ["a<b>&\"c", "second"]
    assert "loss-training.svg" in os.listdir(named / "both")


def test_what_a_report_refuses(quern, named, second, tmp_path):
    with open(named / "plain.csv", "w", newline="") as file:
        csv.writer(file).writerows(row[1:] for row in csv.reader(open(named / "test.csv")))
    for words, code, text in (
            (["report"], 2, "RUN is missing"), (["report", "none"], 1, "run.json"),
            (["report", "second", "--data", "test.csv"], 2, "--model"),
            (["report", "second", "--model", "model"], 1, "is not the one that the run made"),
            (["report", "a<b>&\"c", "--model", "model", "--importance", 2], 2, "--data"),
            (["report", "a<b>&\"c", "second", "--model", "model"], 2, "one run"),
            (["report", "a<b>&\"c", "--model", "model", "--data", "plain.csv"], 1, "no labels of classes")):
        done = run(quern, *words, "-o", tmp_path / "x.html", cwd=named)
        assert done.returncode == code and text in done.stderr, (words, done.stderr)
        assert not (tmp_path / "x.html").exists()


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURE = """<!DOCTYPE html><html><body><p id="out"></p><iframe id="f" style="width:%dpx;height:4000px;border:0" srcdoc="%s">
</iframe><script>document.getElementById("f").onload=function(e){var d=e.target.contentDocument,r=d.documentElement;
document.getElementById("out").textContent=[r.scrollWidth,r.clientWidth,d.querySelectorAll("svg").length,
Array.from(d.querySelectorAll("img")).filter(function(i){return i.naturalWidth==0}).length,
getComputedStyle(d.body).backgroundColor].join("|")}</script></body></html>"""


@LONG
@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_browser(quern, named, tmp_path, width, dark):
    """No horizontal scroll at any width, all images decode, and the background follows the reader."""
    if not BROWSER:
        pytest.skip("there is no chromium")
    for name in ("own.html", "both.html"):
        page = (named / name).read_text()
        (tmp_path / "m.html").write_text(MEASURE % (width, html.escape(page)))
        done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900",
                               *(["--blink-settings=preferredColorScheme=0"] if dark else []), "--virtual-time-budget=5000",
                               "--dump-dom", (tmp_path / "m.html").as_uri()], capture_output=True, text=True, timeout=120)
        scroll, client, charts, broken, colour = done.stdout.split('id="out">')[1].split("<")[0].split("|")
        assert int(scroll) == int(client) and int(client) > width - 20 and int(broken) == 0  # 20: a scroll bar
        assert int(charts) == page.count("<svg")
        assert colour == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")
