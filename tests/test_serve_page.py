"""The page at / of quern serve, and what it asks the server for."""

import base64
import csv
import hashlib
import json
import re
import subprocess

import numpy as np
import pytest

import browser
import serving
from machine import LONG

WORDS = "sun rain snow wind hail fog".split()


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.astype("u1").tobytes()


@pytest.fixture(scope="module")
def folder(quern, tmp_path_factory):
    """Models of pictures, of rows and of texts."""
    folder = tmp_path_factory.mktemp("page")
    pictures = np.zeros((40, 8, 8))
    pictures[::2, :, 3:5] = pictures[1::2, 3:5, :] = 255  # an upright line, and a flat one
    (folder / "x.idx").write_bytes(idx(pictures))
    (folder / "y.idx").write_bytes(idx(np.arange(40) % 2))
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["age", "a city", "kind"], *([i, ("Bern", 'the "Old" town, Ulm')[i % 2], ("no", "yes")[i % 2]]
                                                               for i in range(40))])
    (folder / "s.jsonl").write_text("".join(json.dumps({"note": f"{WORDS[i % 6]} and {WORDS[i % 3]}", "warm": i % 2}) + "\n"
                                            for i in range(40)))
    for name, words in (("lines", ["--data", "x.idx", "--labels", "y.idx", "--shape", "1x8x8", "--model", "conv 2 3x3 relu; dense 2 softmax"]),
                        ("rows", ["--data", "t.csv", "--label", "kind", "--model", "dense 2 softmax"]),
                        ("texts", ["--data", "s.jsonl", "--label", "warm", "--text", "note", "--tokens", "words", "--context", "4", "--model",
                                   "embedding 9 4; pool mean; dense 2 softmax"])):
        done = subprocess.run([quern, "train", *words, "--epochs", "20", "--batch", "8", "--quiet", "-o", f"{name}.safetensors"], cwd=folder,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def server(quern, folder):
    with serving.serve(quern, *(folder / f"{name}.safetensors" for name in ("lines", "rows", "texts"))) as server:
        yield server
        assert server.end()[0] == 0


def test_the_page_needs_nothing_else(server):
    status, headers, body = server.get("/")
    page, policy = body.decode(), headers["Content-Security-Policy"]
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "connect-src 'self'" in policy
    for tag, word in ("script", "script-src"), ("style", "style-src"):
        text, = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
        assert f"{word} 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert not re.search(r"""https?://|<[^>]* (style|on\w+)=|\b(src|href)=["'](?!data:)""", page)
    assert set(re.findall(r'\bel\("(\w+)"\)', page)) <= set(re.findall(r'\bid="(\w+)"', page))


def test_what_the_page_knows_of_models(server, folder):
    lines, rows, texts = json.loads(server.get("/page/models")[2])["models"]
    assert [m["name"] for m in (lines, rows, texts)] == ["lines", "rows", "texts"]
    assert lines["takes"] == "image" and lines["shape"] == [1, 8, 8] and not lines["resizes"] and lines["columns"] is None
    assert rows["takes"] == "rows" and rows["shape"] is None and rows["classes"] == ["no", "yes"]
    assert rows["columns"] == [{"name": "age"}, {"name": "a city", "categories": ["Bern", 'the "Old" town, Ulm']}]
    assert texts["takes"] == "text" and texts["columns"] is None and "for warm" in texts["about"]
    assert rows["digest"] == hashlib.sha256((folder / "rows.safetensors").read_bytes()).hexdigest()


SENT = """new Promise(done => { const reader = new FileReader(); reader.onload = () => done(reader.result.split(",")[1]);
          reader.readAsDataURL(sent); })"""
ANSWERED = "document.getElementById('checked').textContent || document.getElementById('fault').textContent"


@LONG
def test_in_a_browser(quern, server, folder, tmp_path):
    with browser.page(tmp_path / "profile") as page:
        for width in 320, 1280:
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
            page.open(f"http://{server.host}:{server.port}/")
            page.until("!document.getElementById('picture').hidden")
            assert page.value("document.documentElement.scrollWidth") <= width
        colour = "getComputedStyle(document.body).backgroundColor"
        assert page.value(colour) == "rgb(255, 255, 255)"
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        assert page.value(colour) == "rgb(13, 17, 23)"

        page.value("{ const ask = fetch; fetch = (path, o) => { sent = o.body; return ask(path, o); }; }")
        # An upright line with the mouse; what was sent is a picture for which `quern predict` answers the same.
        left, top, size = page.value("(b => [b.left, b.top, b.width])(document.getElementById('board').getBoundingClientRect())")
        page.drag([(left + size / 2, top + size * part) for part in (.1, .5, .9)])
        assert page.until(ANSWERED) == "(computed again here: equal)"
        assert page.value("document.getElementById('said').textContent") == "0"
        (tmp_path / "drawing.png").write_bytes(base64.b64decode(page.value(SENT)))
        assert page.value("[document.getElementById('sent').href.slice(0, 5), document.getElementById('sent').download].join(' ')") == "blob: drawing.png"
        done = subprocess.run([quern, "predict", folder / "lines.safetensors", tmp_path / "drawing.png"], capture_output=True, text=True)
        assert done.returncode == 0 and "0" in done.stdout.split("\n")[1].split(","), done

        # A flat line by the keyboard alone.
        page.value("document.getElementById('board').focus()")
        page.press("Delete", code=46)
        page.press(" ", " ", 32)
        for _ in range(8):
            page.press("ArrowRight", code=39)
        page.until("document.getElementById('said').textContent === '1'")

        # Rows: fields and the Enter key, then pasted ones.
        choose = "(s => { s.value = '%d'; s.dispatchEvent(new Event('change')); })(document.getElementById('model'))"
        page.value(choose % 1)
        page.value("document.getElementById('f0').focus()")
        page.call("Input.insertText", text="7")
        page.value("document.getElementById('f1').selectedIndex = 2")
        page.press("Enter", "\r", 13)
        assert page.until(ANSWERED) == "(computed again here: equal)"
        assert page.value("document.getElementById('said').textContent") == "yes"
        page.value("document.getElementById('pasted').value = '8,Bern\\n9,\"the \"\"Old\"\" town, Ulm\"'")
        page.value("document.querySelector('#rows button').click()")
        assert page.until("/answers/.test(document.getElementById('said').textContent) && document.getElementById('detail').textContent")[-30:]
        assert [cell for cell in page.value("Array.from(document.querySelectorAll('#detail tbody tr'), r => r.cells[1].textContent)")] == ["no", "yes"]
        page.value("document.getElementById('pasted').value = '8,Bern,3'; document.querySelector('#rows button').click()")
        assert "line 2" in page.until("!document.getElementById('fault').hidden && document.getElementById('fault').textContent")

        page.value(choose % 2)
        page.value("document.getElementById('text').value = 'sun and rain'; document.querySelector('#prose button').click()")
        assert page.until(ANSWERED) == "(computed again here: equal)"

        # What a screen reader gets: each control has a name.
        for node in page.call("Accessibility.getFullAXTree")["nodes"]:
            if node["role"]["value"] in ("button", "textbox", "combobox", "checkbox", "link") and not node["ignored"]:
                assert node["name"]["value"], node
        assert [fault for fault in page.faults if "400" not in fault.get("text", "")] == []
