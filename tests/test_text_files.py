"""Files that are texts, in folders and archives: items with the folders as classes (docs/exactness.md
25.84), or the documents of a corpus."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile

import pytest

TEXTS = {"b/neg/1.txt": "A dull film, with \"quotes\"\r\nand a second line", "b/neg/10.txt": "\ufeffA mark before the dull text",
         "b/neg/2.txt": "Über all dull,\tplot", "b/pos/1.txt": "\ufeff", "b/pos/2.txt": "a fine film, fine plot",
         "b/pos/deep/er.txt": "one more fine film\n"}


def archive(path, files):
    """With what is ignored, and in another order than that of the names."""
    listed = [("b/.hidden.txt", b"?"), *sorted(files.items(), reverse=True)]
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in listed:
                file.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w", format=tarfile.GNU_FORMAT) as file:
        for name, content in listed:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def told(run_quern):
    """told(words): what data info says of a table."""
    return lambda *words: json.loads(run_quern("data", "info", *words, "--json").stdout)


@pytest.fixture
def made(tmp_path):
    """The same texts in a folder and in archives."""
    files = {name: text.encode() for name, text in TEXTS.items()}
    for k, (name, content) in enumerate(files.items()):
        path = tmp_path / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        packed = tmp_path / "packed" / (name + ["", ".gz", ".bz2", ".xz"][k % 4])
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes([bytes, gzip.compress, bz2.compress, lzma.compress][k % 4](content))
    return [tmp_path / "a", tmp_path / "packed", *(archive(tmp_path / name, files) for name in ("t.tar", "t.tar.gz", "t.zip"))]


def test_classes(made, told, run_quern, tmp_path):
    """As the table of the same texts and classes."""
    rows = [{"class": name.split("/")[1], "text": text.lstrip("\ufeff")} for name, text in sorted(TEXTS.items())]
    (tmp_path / "same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = ["--label", "class", "--text", "text"]
    tokens = ["--tokens", "bytes", "--context", 24, "--task", "classify"]
    for words in [], tokens:
        wanted = told(tmp_path / "same.jsonl", *table, *words)
        assert wanted["class_names"] == ["neg", "pos"] and wanted["items"] == len(TEXTS)
        for path in made:
            own = told(path, *words)
            assert (own["digest"], own["counts"], own["label"]) == (wanted["digest"], wanted["counts"], "class"), path
    assert told(made[2], "--unlabelled")["target"] == "none"
    run_quern("train", "--data", made[3], *tokens, "--model", "embedding 256 2; dense 2 softmax", "--epochs", 1, "-o", tmp_path / "m")
    run_quern("predict", tmp_path / "m", made[4], "-o", tmp_path / "p.csv")
    assert [line.split(",")[1] for line in (tmp_path / "p.csv").read_text().split()[1:]] == sorted(TEXTS)
    assert run_quern("evaluate", tmp_path / "m", made[0]).stdout == run_quern("evaluate", tmp_path / "m", tmp_path / "same.jsonl", *table[2:]).stdout


def test_documents(made, told, run_quern, tmp_path):
    """Each file of an archive is one, as each file of a folder."""
    words = ["--tokens", "bpe:260", "--context", 8]
    digests = {told(path, *words)["digest"] for path in made}
    assert len(digests) == 1
    for path in made:
        run_quern("data", "tokenize", path, "--tokens", "bytes", "-o", tmp_path / "t.bin")
        assert (tmp_path / "t.bin").read_bytes()[::2] == "".join(TEXTS[name] for name in sorted(TEXTS)).encode()
    several = told(made[0], made[3], *words)
    assert several["digest"] == told(made[2], made[4], *words)["digest"] not in digests


def test_tables_are_tables(told, tmp_path):
    """Files of CSV in folders, whose names are those of texts."""
    for k in range(2):
        (tmp_path / "t" / f"{k}").mkdir(parents=True)
        (tmp_path / "t" / f"{k}" / "x.txt").write_text("y,a,b\n1,2,3\n0,4,5\n")
    assert told(tmp_path / "t")["format"] == "csv"


@pytest.mark.parametrize("name, content, words, what", [
    ("top.txt", b"x", [], "beside the folders of the classes"), ("b/pos/l.txt", b"\xfcber", [], "not UTF-8"),
    ("b/pos/e.txt", b"", [], "is empty"),
    ("b/pos/z.txt", gzip.compress(b"x", mtime=0), ["--tokens", "bytes", "--context", 4], "compressed with gzip"),
    ("b/pos/i.txt", b"\x89PNG\r\n\x1a\n" + bytes(200), ["--tokens", "bytes", "--context", 4], "an image"),
    ("b/x.png", b"\x89PNG\r\n\x1a\n" + bytes(200), ["--tokens", "bytes", "--context", 4], "an image")],
    ids=["beside", "latin", "empty", "packed", "image", "png"])
def test_a_bad_file_is_named(run_quern, tmp_path, name, content, words, what):
    files = {**{name: text.encode() for name, text in TEXTS.items()}, name: content}
    for path in archive(tmp_path / "t.tar", files), archive(tmp_path / "t.zip", files):
        done = run_quern("data", "info", path, *words, status=1)
        assert what in done.stderr and f"{path}, {name}" in done.stderr, done.stderr
