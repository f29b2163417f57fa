"""Job files: `quern run JOB.toml`, and its reader beside Python's tomllib."""

import ctypes
import json
import random
import subprocess

import numpy
import pytest

import builds
from test_kernel import HEAD, cache, quick, run  # noqa: F401: fixtures

ROOT = builds.ROOT
SHIM = r"""
#include "toml.h"
#include <stdio.h>
#include <string.h>
int toml_dump(const char *text, size_t size, char *out, size_t space) {
    toml_file file;
    qn_error err;
    size_t used = 0;
    *out = '\0';
    if (toml_read(text, size, "t", &file, &err) != QN_OK)
        return snprintf(out, space, "%s\x1f%s\x1f%s", err.what, err.where, err.remedy), 0;
    for (size_t i = 0; i < file.count && used < space; i++)
        used += (size_t)snprintf(out + used, space - used, "%s\x1f%s\x1f%d\x1f%s\x1e", file.at[i].table,
                                 file.at[i].key, (int)file.at[i].kind, file.at[i].text);
    toml_release(&file);
    return 1;
}
"""
TABLE, TEXT, INTEGER, FLOAT, BOOLEAN, INTEGERS = range(6)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """ours(text): the dict that tomllib.loads would give, or ValueError."""
    builds.require("cc")
    folder = tmp_path_factory.mktemp("toml")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-std=c17", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", f"-I{ROOT / 'include'}", f"-I{ROOT / 'app'}",
                    "shim.c", ROOT / "app" / "toml.c", "-o", "shim.so"], cwd=folder, check=True)
    dump = ctypes.CDLL(str(folder / "shim.so")).toml_dump
    buffer = ctypes.create_string_buffer(1 << 17)
    kinds = {TEXT: str, INTEGER: int, FLOAT: float, BOOLEAN: lambda text: text == "true",
             INTEGERS: lambda text: list(map(int, text.split()))}

    def read(text):
        data = text.encode("utf-8", "surrogateescape")
        good = dump(data, ctypes.c_size_t(len(data)), buffer, ctypes.c_size_t(len(buffer)))
        said = buffer.value.decode("utf-8", "replace")
        if not good:
            what, where, remedy = said.split("\x1f")
            assert what and where.startswith("t, line ") and remedy
            raise ValueError(what)
        found = {}
        for entry in said.split("\x1e")[:-1]:
            table, key, kind, value = entry.split("\x1f")
            if int(kind) == TABLE:
                found[key] = {}
            else:
                (found[table] if table else found)[key] = kinds[int(kind)](value)
        return found
    return read


# What other readers take and this one does not.
SUBSET = ("not supported", "only arrays of integers", "more than 64 bits", "less than -2^63", "U+0000")


def check(ours, text):
    """Returns whether the text was accepted."""
    tomllib = pytest.importorskip("tomllib")
    try:
        want = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        want = None
    try:
        found = ours(text)
    except ValueError as failure:
        assert want is None or any(word in str(failure) for word in SUBSET), (text, want, str(failure))
        return False
    assert want is not None and repr(found) == repr(want), (text, want, found)
    return True


def test_corpus_beside_tomllib(ours):
    files = list((ROOT / "tests" / "fuzz" / "corpus" / "toml").iterdir())
    accepted = [check(ours, file.read_bytes().decode("utf-8", "surrogateescape")) for file in files]
    assert sum(accepted) >= 2 and len(accepted) - sum(accepted) >= 5


PIECES = ["a", "b", "key", " = ", "=", "\n", "\n", "\n", "[", "]", "[t]\n", '"', "'", '"x"', "'y'", "#", " ", "\t", ",", "1", "0", "12",
          "-", "+", "_", ".", "e", "E5", "0x", "0o7", "0b1", "true", "false", "inf", "nan", "\\", "\\u00e9", "\\U0001F600", "\\n",
          "\r\n", "\r", "\u00e9", "{", "}", "[1, 2]", "1979-05-27", "07:32:00", '"""', "'''", "\x7f", "\x01", "a = 1\n", "b = 'c'\n",
          "c = 1.5e3 # d\n", "99999999999999999999", "\\u0000", "\\ud800", "1_000", "\x0c"]


def test_random_texts_beside_tomllib(ours):
    draw = random.Random(1)
    accepted = 0
    for _ in range(6000):
        start = draw.choice(["", "a = ", "a = [", 'a = "', "[t]\nk = "])
        accepted += check(ours, start + "".join(draw.choices(PIECES, k=draw.randrange(1, 9))))
    assert accepted > 100


@pytest.mark.parametrize("value", ["0", "-0", "+7", "1_0", "1__0", "_1", "1_", "01", "-01", "0x_1", "0xF_f", "0b2", "0o8", "1.", ".5", "1.5",
                                   "-1.5e+03", "1e06", "1e", "1e_5", "0.0", "00.5", "5e-400", "0x", "-0x1", "+0b1", "9223372036854775807",
                                   "18446744073709551615", "18446744073709551616", "-9223372036854775809", "[]", "[1,]", "[,]",
                                   "[1 2]", "[1, 2.0]", "[[1]]", "[\n# c\n1\n,\n2 # d\n]", "true", "True", "truex", "''", '""', "'a\\b'",
                                   '"a\\b"', '"\\u00E9"', '"\\u12"', '"\\e"', "'", '"', "a", "", "# no value", '"x" y', "1 2",
                                   "1979-05-27", "07:32:00", "inf", "-nan", "{}", '"""x"""', "1e400"])
def test_values_beside_tomllib(ours, value):
    if value == "1e400":
        assert ours(f"a = {value}") == {"a": float("inf")}  # the option refuses it
        return
    for text in (f"a = {value}", f"a = {value}\n", f"[t]\r\n'k' = {value} # c\r\n[u]\r\n"):
        check(ours, text)


KERNEL = HEAD + """INDEX(i); INPUT(double, price); SCALAR(double, sigma); SCALAR(int64_t, n, 3); OUTPUT(double, cost); SUM(double, all);
KERNEL { const double c = price * sigma + n; cost = c; all = c; }
"""


def test_run(run, tmp_path):
    """The file's options are those of a command line, which overrides them; paths are relative to it."""
    job = tmp_path / "job"
    (job / "out").mkdir(parents=True)
    price = numpy.arange(7.0)
    numpy.save(job / "p.npy", price)
    numpy.save(tmp_path / "q.npy", price + 1)
    (job / "price.c").write_text(KERNEL)
    (job / "price.toml").write_text('kernel = "price.c"  # beside this file\nthreads = 1\njson = true\nquiet = false\n\n'
                                    '[in]\nprice = "p.npy"\n[out]\ncost = \'out/c.npy\'\n[set]\nsigma = 0.2\nn = 1_0\n')

    def sums(*words):
        return float(json.loads(run(None, "job/price.toml", *words, command=["run"]).stdout)["results"]["all"]["value"])
    assert sums() == (price * 0.2 + 10).sum()
    assert (numpy.load(job / "out" / "c.npy") == price * 0.2 + 10).all()
    recipe = json.loads((job / "out" / "c.recipe.json").read_text())
    assert sums("--set", "sigma=0.5") == (price * 0.5 + 10).sum()
    assert sums("--set", "n=0", "--in", "price=q.npy", "--out", "cost=here.npy", "--shape", "7") == ((price + 1) * 0.2).sum()
    assert (tmp_path / "here.npy").exists()
    (job / "k.toml").write_text("[set]\nsigma = 1\n")
    run(None, "job/k.toml", "--kernel", "job/price.c", "--in", "price=job/p.npy", "--out", "cost=job/out/c.npy", "--set", "sigma=0.2",
        "--set", "n=10", command=["run"])
    again = json.loads((job / "out" / "c.recipe.json").read_text())
    assert again["results"] == recipe["results"] and again["scalars"] == recipe["scalars"]


def test_shapes(run, tmp_path):
    (tmp_path / "k.c").write_text(HEAD + "INDEX(y, x); COUNT(n); KERNEL { n = 1; }\n")
    for shape in ('[3, 4]', '"3x4"', "[0x3, 4,]"):
        (tmp_path / "a.toml").write_text(f'kernel = "k.c"\nshape = {shape}\n')
        assert "n                12\n" in run(None, "a.toml", command=["run"]).stdout
        assert "n                10\n" in run(None, "a.toml", "--shape=2x5", command=["run"]).stdout


def test_times(run, tmp_path):
    """Times that are numbers on the command line are numbers in the file, too."""
    (tmp_path / "k.c").write_text(HEAD + "INDEX(i); ITERATION(t); COUNT(n); KERNEL { n = t > 1; }\n")
    for every in ("2", '"2"', '"1m"'):
        (tmp_path / "a.toml").write_text(f"kernel = 'k.c'\nshape = 5\niterations = 3\ndevice-timeout = 7.5\ncheckpoint = 's'\n"
                                         f"checkpoint-every = {every}\nresume = true\n")
        assert "n                5\n" in run(None, "a.toml", command=["run"]).stdout


def test_documentation(ours):
    page = (ROOT / "docs" / "kernels.md").read_text()
    job = ours(page.split("```toml\n")[1].split("```")[0])
    assert job["kernel"] == "black_scholes.c" and job["set"] == {"sigma": 0.2} and len(job["in"]) == 3


@pytest.mark.parametrize("text, says, place", [
    ("kernel = 3", '"kernel" has a value of another kind', "write a text in quotation marks"),
    ("kernle = 'k.c'", 'no option "kernle"', 'did you mean "kernel"?'),
    ("\n[sets]\na = 1", 'no option "sets"', 'did you mean "set"?'),
    ("[threads]\nn = 1", '"threads" is not a table', "write threads = VALUE before the first table"),
    ("set = 1", '"set" is a table', "write [set], and below it"),
    ("[set]\nsigma = true", '"sigma" of [set] has a value of another kind', "write a number"),
    ("[in]\nprice = 5", '"price" of [in]', "write a path in quotation marks"),
    ("threads = 5000", '--threads cannot be "5000"', "from 0 to 4096"),
    ("threads = -1", '--threads cannot be "-1"', "from 0 to 4096"),
    ("iterations = 1.5", '"iterations" has a value of another kind', "write a whole number"),
    ("quiet = 1", '"quiet"', "write true or false"),
    ("shape = [1.5]", "only arrays of integers", "[600, 800]"),
    ("kernel = ''", "the value of --kernel is empty", "line 1"),
    ("[set]\n'a=b' = 1", "is not a name", "line 2"),
    ("a = 1\na = 2", '"a" is defined twice, first in line 1', "line 2"),
    ("kernel = k.c", "there is no value", 'put a text in "..."'),
    ("x = \"\xff", "not UTF-8", "line 1"),
    ("kernel = 'none.c'", "none.c", ""),
    ("alone = true", "--alone is needed before files are read", "write it on the command line"),
    ("threads = 1", "--kernel FILE is required", "name a file of options"),
    ("kernel = 'k.c'\nshape = 3\ndevices = 'cpu'\nthreads = 2", "--threads and --devices say the same", "a.toml, line 3"),
    ("kernel = 'k.c'\nshape = '3xx'", '--shape cannot be "3xx"', "a.toml, line 2"),
    ("kernel = 'k.c'\nshape = [1, 2]", "1 dimension, not 2", "a.toml, line 2"),
    ("kernel = 'k.c'\nresume = true", "--resume needs --checkpoint", "a.toml, line 2"),
    ("kernel = 'k.c'\n\n[set]\nx = 1", 'no scalar "x"', "k.c (a.toml, line 4)"),
    ("kernel = 'k.c'\n[in]\nn = 'none.npy'", 'no array "n"', "a.toml, line 3"),
    ("\xef\xbb\xbfkernel = 'k.c'\nshape = 3\n\xef\xbb\xbf", "there is no key", "line 3"),
])
def test_refused(run, tmp_path, text, says, place):
    (tmp_path / "k.c").write_text(HEAD + "INDEX(i); COUNT(n); KERNEL { n = 1; }\n")
    (tmp_path / "a.toml").write_bytes(text.encode("latin-1"))
    status = 2 if says.startswith(('"', "--", "no option", "is not a name", "the value", "1 dim", "no scalar", "no array")) and "twice" not in says else 1
    done = run(None, "a.toml", command=["run"], status=status)
    assert says in done.stderr and place in done.stderr, done.stderr


def test_other_files(run, tmp_path):
    (tmp_path / "k.c").write_text(HEAD)
    assert "write --kernel k.c" in run(None, "k.c", command=["run"], status=2).stderr
    assert "No such file" in run(None, "none.toml", command=["run"], status=1).stderr
    assert "it is a folder" in run(None, ".", command=["run"], status=1).stderr
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    assert "more than 1048576 bytes" in run(None, "large.toml", command=["run"], status=1).stderr
    assert "extra argument" in run(None, "a.toml", "b.toml", command=["run"], status=2).stderr
    (tmp_path / "many.toml").write_text("[set]\n" + "".join(f"a{i} = {i}\n" for i in range(100)))
    assert "more than 64 times" in run(None, "many.toml", command=["run"], status=2).stderr


def test_replay_of_other_texts(run, tmp_path):
    """What is called .json is meant as the recipe of a kernel, not as a model."""
    for name, text in (("a.json", "hello"), ("b.json", ""), ("c", " \n {")):
        (tmp_path / name).write_text(text)
        said = run(None, name, command=["replay"], status=1).stderr
        assert "invalid JSON" in said and "name a recipe that quern run wrote" in said
