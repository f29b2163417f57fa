"""Statistics of columns: exact to the last bit against long fractions, close to pandas and NumPy."""

import json
import math
import sys
from pathlib import Path

import pytest

import python_package

sys.path.insert(0, str(Path(__file__).resolve().parent / "oracle"))
import column_statistics as oracle  # noqa: E402

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def q():
    python_package.folder()
    import quern

    return quern


def columns(seed, items):
    """Columns that are easy and columns that are not: wide ranges, cancellation, ties, zeros."""
    random = np.random.default_rng(seed)
    normal = random.normal(size=items)
    made = [normal, 1e4 + normal, random.integers(0, 5, items), np.zeros(items) - 0.0,
            np.full(items, 0.1), np.exp(20 * normal), np.exp(80 * np.clip(normal, -1, 1)),
            random.integers(1, 2**31, items).astype(np.int32).view(np.float32),
            np.where(random.random(items) < 0.5, 3e38, -3e38), 1e-44 * random.integers(-9, 9, items),
            np.where(random.random(items) < 0.3, np.nan, normal), np.where(normal < 0, -0.0, 0.5)]
    with np.errstate(all="ignore"):
        table = np.stack([np.asarray(c, np.float32) for c in made], 1)
    table[~np.isfinite(table) & ~np.isnan(table)] = 1
    table[np.isnan(table[:, 7]), 7] = 2
    return table


def same(got, wanted, where):
    assert (math.isnan(got) and math.isnan(wanted)) or got.hex() == float(wanted).hex(), (
        where, got, wanted)


def present(values):
    return values[values == values]


@pytest.mark.parametrize("items", [1, 2, 3, 37, 300])
def test_every_number_is_the_exact_one_rounded_once(q, items):
    table = columns(items, items)
    probes = (0, 0.01, 0.25, 1 / 3, 0.5, 0.999, 1, 2**-24)
    found = q.Data(table).describe(probes, correlation=items < 100, histograms=True)
    for k, column in enumerate(table.T):
        values = present(column)
        assert found["count"][k] == len(values) and found["missing"][k] == items - len(values)
        for name, number in oracle.moments(values).items():
            same(found[name][k], number, (k, name))
        for i, probe in enumerate(probes):
            same(found["quantiles"][k, i], oracle.quantile(values, probe), (k, probe))
        counts, edges = oracle.histogram(values) if len(values) else ([], [])
        assert len(values) == 0 or found["histograms"][k][0].tolist() == counts, k
        assert len(values) == 0 or found["histograms"][k][1].tolist() == edges, k
        if items < 100:
            for m in range(k, table.shape[1]):
                wanted = oracle.pair(column, table[:, m])
                for name, number in zip(("covariance", "correlation"), wanted):
                    same(found[name][k, m], number, (k, m, name))
                    same(found[name][m, k], number, (m, k, name))


def test_order_and_threads_do_not_matter(q):
    """70,000 items: more than are sorted whole, in more than one block of products."""
    random = np.random.default_rng(5)
    table = columns(7, 70000)
    labels = random.integers(0, 3, len(table))
    first = None
    for threads in (1, 3):
        found = q.Data(table, labels).describe((0.1, 0.5, 0.77), by_class=True, correlation=True,
                                               histograms=True, threads=threads)
        text = repr(found)
        assert first is None or text == first
        first = text
        move = random.permutation(len(table))
        table, labels = table[move], labels[move]
    for k, column in enumerate(table.T):
        values = np.sort(present(column)).astype(np.float64)
        assert found["sum"][k] == math.fsum(values) and found["minimum"][k] == values[0]
        wanted = [oracle.quantile(values[i:i + 2], place - i) for place in
                  (p * (len(values) - 1) for p in (0.5,)) for i in [int(place)]]
        assert found["quantiles"][k, 1] == pytest.approx(wanted[0], rel=1e-9)
        counts, edges = found["histograms"][k]
        assert counts.tolist() == np.histogram(values, edges)[0].tolist() or len(edges) == 2
        ours = found["by_class"]
        for c in range(3):
            of_class = present(column[labels == c]).astype(np.float64)
            assert ours["sum"][c, k] == math.fsum(of_class)
            assert ours["count"][c, k] == len(of_class)
            assert ours["maximum"][c, k] == of_class.max()


def test_products_are_exact_in_every_range(q):
    """Blocks of a narrow range are added by extraction, the others one by one."""
    table = columns(11, 1100)[:, [0, 6, 10]]
    found = q.Data(table).describe(correlation=True, threads=1)
    for k in range(3):
        for m in range(k, 3):
            wanted = oracle.pair(table[:, k], table[:, m])
            same(found["covariance"][k, m], wanted[0], (k, m))
            same(found["correlation"][k, m], wanted[1], (k, m))


def test_as_pandas_describes(q):
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(1)
    frame = pandas.DataFrame(random.normal(3, 2, (999, 4)).astype(np.float32), columns=list("abcd"))
    frame.iloc[3, 1] = np.nan
    found = q.Data(frame).describe(as_frame=True)
    wanted = frame.astype(np.float64).describe().T
    for ours, theirs in (("count", "count"), ("mean", "mean"), ("deviation", "std"),
                         ("minimum", "min"), ("25%", "25%"), ("50%", "50%"), ("maximum", "max")):
        np.testing.assert_allclose(found[ours], wanted[theirs], rtol=1e-12)
    np.testing.assert_allclose(found["skewness"], frame.astype(np.float64).skew(), rtol=1e-10)
    correlation = q.Data(frame).describe(correlation=True)["correlation"]
    np.testing.assert_allclose(correlation, frame.astype(np.float64).corr(), rtol=1e-9, atol=1e-12)
    assert list(found.index) == list("abcd")


def test_targets_categories_and_bytes(q):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [1, 2, 3, 4], "c": ["b", "a", None, "b"], "y": [0.5, 1, 2, 4]})
    found = q.Data(frame, label="y").describe(correlation=True)
    assert found["names"] == ["n", "c", "y"] and found["categories"][1].tolist() == [1, 2]
    assert found["missing"].tolist() == [0, 1, 0] and math.isnan(found["mean"][1])
    assert found["mean"][2] == 1.875 and math.isnan(found["correlation"][0, 1])
    assert found["correlation"][0, 2] == oracle.pair([1, 2, 3, 4], [0.5, 1, 2, 4])[1]
    pixels = np.arange(60, dtype=np.uint8).reshape(20, 3)
    assert q.Data(pixels).describe()["mean"].tolist() == pixels.mean(0).tolist()


@pytest.mark.parametrize("options, words", [
    ({"by_class": True}, "no classes"), ({"quantiles": [1.5]}, "not a quantile"),
    ({"quantiles": [float("nan")]}, "not a quantile"), ({"threads": -1}, "threads"),
    ({"bins": 2**31}, "bins"), ({"quantiles": [0.5] * 1001}, "quantile")])
def test_nonsense_is_refused(q, options, words):
    with pytest.raises(q.UsageError, match=words):
        q.Data(np.ones((3, 2), np.float32)).describe(**options)


TABLE = "a,b,kind,y\n1,,red,u\n2,5,blue,v\n4,7,red,u\n"


def test_the_command(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    words = ["data", "stats", "t.csv", "--label", "y"]
    text = run_quern(*words, "--by-class", "--correlation", "--histograms", cwd=tmp_path).stdout
    assert max(map(len, text.splitlines())) <= 80
    for line in (r"a 2.3333 1.5275 0.93522 1 4", "b 6 1.4142 - 5 7", "u 2.5 2.1213 - 1 4",
                 "red 2 66.67 %", "missing values", "a b 1", "class items share"):
        assert line in [" ".join(row.split()) for row in text.splitlines()], (line, text)
    told = json.loads(run_quern(*words, "--json", "--by-class", "--quantiles", "0.1", cwd=tmp_path).stdout)
    first = told["columns"][0]
    assert told["event"] == "statistics" and first["mean"] == 7 / 3 and first["quantiles"] == [1.2]
    assert told["columns"][2]["categories"] == [1, 2] and told["columns"][1]["missing"] == 1
    assert first["by_class"][0]["sum"] == 5 and told["columns"][1]["skewness"] is None
    json_lines = [run_quern(*words, "--json", *threads, cwd=tmp_path).stdout for threads in ([], ["--threads", "3"])]
    assert json_lines[0] == json_lines[1]


@pytest.mark.parametrize("more, words", [
    (["--quantiles", "0.5,"], "not a list"), (["--quantiles", "2"], "not a list"), (["--quantiles", ""], "empty"),
    (["--bins", "3"], "--histograms"), (["--quantiles", "1e-9"], "--quantiles")])
def test_the_command_refuses(run_quern, tmp_path, more, words):
    (tmp_path / "t.csv").write_text(TABLE)
    assert words in run_quern("data", "stats", tmp_path / "t.csv", *more, status=2).stderr


def test_by_class_needs_classes(run_quern, tmp_path):
    (tmp_path / "t.csv").write_text("y,a\n0.5,1\n1.5,2\n")
    assert "--by-class" in run_quern("data", "stats", tmp_path / "t.csv", "--by-class", status=2).stderr
