"""Sequences, documents and options of examples/: kernels and scripts beside second computations."""

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import re
import shutil
import sys
import subprocess
import xml.etree.ElementTree

import numpy
import pytest

import builds
import devices
import launch
import python_package
import ranks
from builds import ROOT
from test_kernel import cache, quick, results, run  # noqa: F401: fixtures

sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "examples")]
import draws  # noqa: E402
import asian_option  # noqa: E402
import smith_waterman  # noqa: E402


def text_of(name):
    return (ROOT / "examples" / "kernels" / f"{name}.c").read_text()


def inputs(*names):
    return [word for name in names for word in ("--in", f"{name}={name}.npy")]


@pytest.fixture
def script(tmp_path, monkeypatch):
    """script("tfidf", word, ...) runs a script of examples/ in the test's folder; what it says. A process of its
    own would spend most of its time on loading NumPy."""
    def call(name, *words, status=0):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                importlib.import_module(name).main()
            except SystemExit as end:
                assert status == 1, end
                return str(end)
        assert status == 0
        return said.getvalue()
    return call


def some_devices(quern):
    """[(device, environment)] where tests may take long: compilers of devices do."""
    if os.environ.get("QUERN_LONG_TESTS") != "yes":
        return []
    found = {"LD_LIBRARY_PATH": str(builds.beside(quern, "fakes", "fake_gpu")), "QN_FAKE_CUDA": "memory=64"}
    rows, _ = devices.listed([quern], dict(os.environ))
    return [("cuda:0", found), *[(name, {}) for name, row in rows.items() if row["platform"] == devices.POCL][:1]]


@pytest.fixture
def same(run, quern, tmp_path, quick, cache):  # noqa: F811
    """same(text, outputs, word, ...) runs a kernel in several ways and expects the same bytes; its results."""
    plain, other = tmp_path / "plain-cc", tmp_path / "other-cc"
    for path, line in ((plain, 'cc "$@" -O0'), (other, f'{"clang" if shutil.which("clang") else "cc"} "$@" -O1')):
        path.write_text(f"#!/bin/sh\nexec {line}\n")
        path.chmod(0o755)

    def call(text, outputs, *words):
        seen = set()
        words = [*words, "--recipe", "k.json", *[w for name in outputs for w in ("--out", f"{name}={name}.npy")]]

        files = ["k.json", *[f"{name}.npy" for name in outputs]]

        def note():
            seen.add(b"".join((tmp_path / file).read_bytes() for file in files))
        for more, env in [(["--devices", "cpu:3", "--grain", 7], {"CC": str(plain)}), ([], {"CC": str(other)}),
                          *[(["--devices", name], env) for name, env in some_devices(quern)], (["--threads", 1], {})]:
            done = run(text, *words, *more, "--json", env=env)
            note()
        for file in files:
            (tmp_path / file).unlink()
        ranks.run(quern, 2, "run", "--kernel", "k.c", *words, "--threads", 1, cwd=tmp_path,
                  env=launch.clean_environment(QUERN_CACHE=str(cache), CC=quick))
        note()
        assert len(seen) == 1
        return {name: result.get("value") for name, result in results(done).items()}
    return call


@pytest.fixture
def quern_kmeans(quick, monkeypatch, cache):  # noqa: F811
    """The script kmeans.py, and the package that it uses."""
    python_package.folder()
    monkeypatch.setenv("CC", quick)
    monkeypatch.setenv("QUERN_CACHE", str(cache))
    return importlib.import_module("kmeans"), importlib.import_module("quern")


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "kernels").glob("*.c")), ids=lambda path: path.stem)
def test_for_editors(path):
    """With its include a kernel is C, in which editors find errors."""
    done = subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           f"-I{ROOT / 'include'}", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- sequences

def table_of(text):
    text = text[text.index("BLOSUM62[576]"):]
    numbers = re.findall(r"-?\d+", text[text.index(" * */") + 5:text.index("};")])
    return numpy.array(numbers, "int8").reshape(24, 24)


def local_score(table, a, b, opening, extend):
    """As Smith and Waterman wrote it: a gap of any length may end at each cell."""
    h = numpy.zeros((len(a) + 1, len(b) + 1), int)
    gap = opening + extend * numpy.arange(max(h.shape) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            h[i, j] = max(0, h[i - 1, j - 1] + table[a[i - 1], b[j - 1]],
                          (h[i - 1::-1, j] - gap[1:i + 1]).max(), (h[i, j - 1::-1] - gap[1:j + 1]).max())
    return h.max()


def test_smith_waterman(same, run, script, tmp_path):  # noqa: F811
    text = text_of("smith_waterman")
    table = table_of(text)
    # Of the 576 bytes of Biopython's matrix.
    assert hashlib.sha256(table.tobytes()).hexdigest() == \
        "39fb152399425915da6c5d7b1a84eec9943c421f4794fd8648acf4d71cbcee6e"
    draw = numpy.random.default_rng(8)
    query = "MVLSPADKTNVKAAWGKVGA"
    made = ["".join(draw.choice(list("ACDEFGHIKLMNPQRSTVWYBZX*"), size)) for size in draw.integers(1, 40, 25)]
    made += [smith_waterman.mutated(draw, 2 * query, kept) for kept in (0.95, 0.8, 0.5)] + [query.lower(), "UOJ"]
    smith_waterman.write_fasta(tmp_path / "some.fasta", [(f"n{k} of some", s) for k, s in enumerate(made)])
    smith_waterman.write_fasta(tmp_path / "query.fasta", [("q", query)])
    script("smith_waterman", "arrays", "some.fasta", "query.fasta")
    letters, start, size = (numpy.load(tmp_path / f"{name}.npy") for name in ("letters", "start", "size"))
    codes = ["ARNDCQEGHILKMFPSTWYVBZX*".find(c) for c in "".join(made).upper()]
    assert letters.tolist() == [code if code >= 0 else 22 for code in codes]
    for opening, extend in ((11, 1), (4, 2)):
        got = same(text, ["score", "histogram"], *inputs("letters", "start", "size", "query"),
                   "--set", f"open={opening}", "--set", f"extend={extend}")
        numbers = smith_waterman.numbers(query)
        want = [local_score(table, numbers, letters[a:a + n], opening, extend) for a, n in zip(start, size)]
        assert numpy.load(tmp_path / "score.npy").tolist() == want and int(got["best"]) == max(want)
        assert numpy.load(tmp_path / "histogram.npy").tolist() == numpy.bincount(want, minlength=1024).tolist()
    shown = script("smith_waterman", "show", "some.fasta", "query.fasta")
    assert shown.splitlines()[1].split()[2] == str(max(want))
    xml.etree.ElementTree.parse(tmp_path / "scores.svg")
    numpy.save(tmp_path / "query.npy", numpy.zeros(513, "uint8"))
    done = run(text, *inputs("letters", "start", "size", "query"), "--out", "score=s.npy", "--out", "histogram=h.npy",
               status=1)
    assert "local array" in done.stderr
    done = run(text, *inputs("letters", "start", "size", "query"), "--out", "score=s.npy", status=2)
    assert "at COUNT(histogram, 1024)" in done.stderr and "add --out histogram=FILE.npy" in done.stderr
    smith_waterman.write_fasta(tmp_path / "query.fasta", [("q", 27 * query)])
    assert "takes 1 to 512" in script("smith_waterman", "arrays", "some.fasta", "query.fasta", status=1)


# ---------------------------------------------------------------- documents

def cosines(some, asked):
    """By the definitions, with dense arrays: (terms, weights of terms, cosines)."""
    split = [re.findall(r"\b\w\w+\b", text.lower()) for text in [*some, asked]]
    terms = sorted({word for words in split[:-1] for word in words})
    counts = numpy.array([[words.count(term) for term in terms] for words in split], float)
    idf = numpy.log((1 + len(some)) / (1 + (counts[:-1] > 0).sum(0))) + 1
    *vectors, query = counts * idf
    length = numpy.linalg.norm(vectors, axis=1) * numpy.linalg.norm(query)
    return terms, idf, numpy.array(vectors) @ query / numpy.where(length > 0, length, 1)


def of_sklearn(some, asked):
    """The same; loading scikit-learn takes longer than all of this file."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    made = TfidfVectorizer()
    matrix = made.fit_transform(some)
    return made.get_feature_names_out().tolist(), made.idf_, (matrix @ made.transform([asked]).T).toarray()[:, 0]


@pytest.mark.parametrize("wanted", [cosines, of_sklearn])
def test_tfidf(same, script, tmp_path, wanted):
    if wanted is of_sklearn and os.environ.get("QUERN_LONG_TESTS") != "yes":
        pytest.skip("QUERN_LONG_TESTS=yes compares with scikit-learn")
    draw = numpy.random.default_rng(3)
    words = [f"Wort{k}" for k in range(40)] + ["a", "\u00fcber", "x_1", "file's"]
    some = [" ".join(draw.choice(words, size, p=numpy.arange(len(words), 0, -1) / sum(range(len(words) + 1))))
            for size in draw.integers(1, 60, 50)] + ["-"]
    asked = "wort3 Wort30, wort30 \u00dcBER unknown"
    (tmp_path / "some.txt").write_text("\n".join(f"d{k}\t{line}" for k, line in enumerate(some)), encoding="utf-8")
    script("tfidf", "arrays", "some.txt")
    assert script("tfidf", "query", asked) == 'no document has the word "unknown"\n'
    same(text_of("tfidf_counts"), ["documents"], *inputs("terms"))
    got = same(text_of("tfidf_weights"), ["idf", "weight"], *inputs("documents", "query"), "--set", f"all={len(some)}")
    got = same(text_of("tfidf_nearest"), ["cosine"], *inputs("start", "size", "terms", "counts", "idf", "weight"),
               "--set", f"square={got['square']}")
    terms, idf, want = wanted(some, asked)
    assert (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").split() == terms
    assert abs(numpy.load(tmp_path / "idf.npy") - idf).max() < 1e-14
    assert abs(numpy.load(tmp_path / "cosine.npy") - want).max() < 1e-14 and want.max() > 0.3
    assert int(got["related"]) == (want >= 0.2).sum() and abs(float(got["nearest"]) - want.max()) < 1e-14
    assert f"  d{want.argmax()} " in script("tfidf", "show", "some.txt").splitlines()[0]


# ---------------------------------------------------------------- options

def test_black_scholes_picture(run, script, tmp_path):  # noqa: F811
    """The picture of the page is what the kernel gives."""
    script("black_scholes", "make")
    run(text_of("black_scholes"), *inputs("price", "strike", "years"), "--out", "call=call.npy", "--out", "put=put.npy")
    shown = script("black_scholes", "show")
    page = (ROOT / "examples" / "black_scholes.md").read_text()
    assert all(f"    {line}\n" in page for line in shown.splitlines())
    assert (tmp_path / "option.svg").read_bytes() == (ROOT / "examples" / "pictures" / "option.svg").read_bytes()


def asian_paths(paths, dates, price, strike, rate, sigma, years, seed):
    """What the two options pay on each path, by the contract's text."""
    contract = (ROOT / "docs" / "exactness.md").read_text()
    section = contract[contract.index("## 21. "):contract.index("## 22. ")]
    drawn = draws.of(section, seed, numpy.arange(paths))
    double = drawn.f64
    step = years / dates
    spread, drift = sigma * math.sqrt(step), (rate - sigma * sigma / 2) * step
    way, prices, ways = numpy.zeros((3, paths))
    for k in range(dates):
        way = way + (drift + spread * drawn.normal(numpy.full(paths, k)))
        prices, ways = prices + double.exp(way), ways + way
    today = double.exp(numpy.float64(-rate * years))
    return (today * numpy.maximum(price * (prices / dates) - strike, 0),
            today * numpy.maximum(price * double.exp(ways / dates) - strike, 0))


def test_asian_option(same, run, script, tmp_path):  # noqa: F811
    text = text_of("asian_option")
    given = {"price": 90.0, "strike": 95.0, "rate": 0.03, "sigma": 0.4, "years": 0.75, "dates": 5}
    sets = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    got = same(text, [], "--shape", 100, "--seed", 7, *sets)
    paid, geometric = asian_paths(100, seed=7, **given)
    for name, values in (("paid", paid), ("paid_squared", paid * paid), ("geometric", geometric),
                         ("geometric_squared", geometric * geometric), ("product", paid * geometric)):
        assert float(got[name]) == math.fsum(values) > 0, name
    (price, half), other, (helped, narrow) = asian_option.estimates(json.loads((tmp_path / "k.json").read_text()))[0]
    assert math.isclose(price, paid.mean()) and math.isclose(half, 1.959964 * paid.std(ddof=1) / 10, rel_tol=1e-9)
    fit = numpy.polyfit(geometric, paid, 1)
    rest = paid - numpy.polyval(fit, geometric)
    assert math.isclose(narrow, 1.959964 * rest.std(ddof=1) / 10, rel_tol=1e-6)
    # On many paths both are near the known price.
    run(text, "--shape", 8000, "--recipe", "many.json", *sets)
    (_, (mean, half), (_, small)), known = asian_option.estimates(json.loads((tmp_path / "many.json").read_text()))
    assert abs(mean - known) < 2 * half < 0.8 and small < half / 10
    assert abs(helped - known) < 2
    assert f"{known:.4f}" in script("asian_option", "many.json", "k.json")
    xml.etree.ElementTree.parse(tmp_path / "asian.svg")
    (tmp_path / "other.json").write_text('{"shape": [3]}')
    assert "other.json is not the recipe" in script("asian_option", "other.json", status=1)


# ---------------------------------------------------------------- points

def nearest(x, y, centre):
    squares = numpy.array([(x - a) * (x - a) + (y - b) * (y - b) for a, b in centre])
    return squares.argmin(0), squares.min(0)


def exact_sums(values, group, bins):
    return [math.fsum(values[group == k]) for k in range(bins)]


def test_kmeans_step(same, tmp_path):
    draw = numpy.random.default_rng(5)
    x, y, centre = *draw.standard_normal((2, 500)), draw.standard_normal((5, 2))
    centre[4] = centre[2]  # the first of equal ones is taken
    for name, array in (("x", x), ("y", y), ("centre", centre)):
        numpy.save(tmp_path / f"{name}.npy", array)
    got = same(text_of("kmeans"), ["group", "sum_x", "sum_y", "points"], *inputs("x", "y", "centre"))
    group, least = nearest(x, y, centre)
    assert numpy.load(tmp_path / "group.npy").tolist() == group.tolist()
    assert numpy.load(tmp_path / "points.npy").tolist() == numpy.bincount(group, minlength=16).tolist()
    for name, values in (("sum_x", x), ("sum_y", y)):
        assert numpy.load(tmp_path / f"{name}.npy").tolist() == exact_sums(values, group, 16)
    assert float(got["squares"]) == math.fsum(least) and float(got["farthest"]) == least.max()


def test_kmeans(quern_kmeans, script, tmp_path):
    """The whole loop beside NumPy's, bit for bit, and quern.KMeans: its centres do not move."""
    kmeans, package = quern_kmeans
    script("kmeans", "make", "--points", 2000, "--seed", 3)
    x, y = (numpy.load(tmp_path / f"{name}.npy").astype("float32").astype(float) for name in "xy")
    kernel = package.Kernel(kmeans.KERNEL)
    first = kmeans.far_apart(kernel, x, y, 6, 1)
    assert len({tuple(place) for place in first}) == 6
    centre, r, steps = kmeans.steps(kernel, x, y, first)
    want = first
    for _ in range(steps):
        group, least = nearest(x, y, want)
        count = numpy.bincount(group, minlength=6)
        want = numpy.column_stack([exact_sums(x, group, 6), exact_sums(y, group, 6)]) / count[:, None]
    assert steps > 2 and centre.tobytes() == want.tobytes() and r.group.tolist() == nearest(x, y, want)[0].tolist()
    model = package.KMeans(6, tol=0).fit(numpy.column_stack([x, y]))
    centre, r, steps = kmeans.steps(kernel, x, y, model.cluster_centers_)
    assert steps == 0 and r.group.tolist() == model.labels_.tolist()
    assert math.isclose(r.squares, model.inertia_, rel_tol=1e-6)
    said = script("kmeans", "run", "--groups", 12, "--starts", 2).splitlines()
    assert len(said) == 15 and sum(int(line.split()[1].replace(",", "")) for line in said[3:]) == 2000
    assert (tmp_path / "clusters.png").read_bytes()[:4] == b"\x89PNG"
    assert "from 1 to 16" in script("kmeans", "run", "--groups", 17, status=1)


# ---------------------------------------------------------------- pages

@pytest.mark.skipif(os.environ.get("QUERN_LONG_TESTS") != "yes", reason="QUERN_LONG_TESTS=yes runs the pages' commands")
@pytest.mark.parametrize("page, picture", [("smith_waterman", "scores.svg"), ("tfidf", None),
                                           ("black_scholes", "option.svg"), ("asian_option", "asian.svg"),
                                           ("kmeans", "clusters.png")])
def test_page(quern, tmp_path, page, picture):
    """The commands of a page print what stands in it, and draw its picture."""
    examples = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", examples)
    (tmp_path / "quern").symlink_to(quern)
    blocks = re.findall(r"(?:^    .*\n)+", (examples / f"{page}.md").read_text(), re.M)
    commands = [block for block in blocks if re.search(r"^ +(python3|quern|cd) ", block, re.M)]
    path = os.environ["PATH"]
    package = {"PYTHONPATH": str(python_package.folder())} if page == "kmeans" else {}
    done = subprocess.run(["bash", "-e"], input="".join(commands), cwd=tmp_path, text=True, capture_output=True,
                          env={**os.environ, **package, "PATH": f"{tmp_path}:{os.path.dirname(sys.executable)}:{path}"})
    assert done.returncode == 0, done.stderr
    shown = [line[4:] for block in blocks if block not in commands for line in block.splitlines()]
    absent = [line for line in shown if line not in done.stdout.splitlines()]
    assert len(shown) > 4
    if page == "tfidf":  # its documents are those of this Python
        assert re.search(r"^0[.]\d+  \w", done.stdout, re.M)
    else:
        assert not absent
    if picture:
        assert (examples / picture).read_bytes() == (ROOT / "examples" / "pictures" / picture).read_bytes()
