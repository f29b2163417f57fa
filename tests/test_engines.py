"""What Dask, Ray and Spark have in common (python/quern/_engine.py), without any of them. The tests of the
engines themselves are in tests/engines, for `make engines`."""

import ast
import importlib
import io
import subprocess
import sys
import threading

import pytest

import builds
import python_package

np = pytest.importorskip("numpy")
NAMES = sorted(path.name[:-len("_engine.py")] for path in (builds.ROOT / "tests" / "engines").glob("*_engine.py"))


@pytest.fixture(scope="module")
def engine():
    python_package.folder()
    return importlib.import_module("quern._engine")


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_that_is_missing(name):
    """None of them is in the environment of the tests; even if one were, the message would be this."""
    package = {"spark": "pyspark"}.get(name, name)
    said = python_package.python(f"""
import sys
sys.modules[{package!r}] = None
import quern
try:
    import quern.{name}
except quern.UnsupportedError as failure:
    print(failure)
""")
    assert said.startswith(f"quern.{name} needs the package {package}") and "; install it: pip install" in said


def test_the_stubs():
    """They have the public names of the engines, and the parameters of what they have."""
    def known(path):
        tree, found, names = ast.parse(path.read_text()), {}, set()
        for node in tree.body:
            names |= {node.name} if hasattr(node, "name") and node.name[0] != "_" else set()
            for one in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(one, ast.FunctionDef) and one.name != "__getattr__":
                    a = one.args
                    found[node.name, one.name] = [p.arg for p in (*a.args, *a.kwonlyargs, *filter(None, [a.kwarg]))]
        return names, found

    for name in NAMES:
        stub, real = (known(builds.ROOT / "python" / "quern" / f"{name}.{kind}") for kind in ("pyi", "py"))
        assert stub[0] == real[0] and len(stub[1]) > 4
        assert stub[1] == {key: real[1].get(key) for key in stub[1]}
        assert {key for key in real[1] if key[0] in stub[0] and key[1][0] != "_"} <= set(stub[1])


def test_partitions_of_workers(engine):
    """Neighbours, and as many as before; workers without any come last."""
    dealt = engine.contiguous
    assert dealt("bab", ["c", "a", "b"]) == [("a", range(0, 1)), ("b", range(1, 3)), ("c", range(3, 3))]
    assert dealt("aabbb", ["b", "a"]) == [("a", range(0, 2)), ("b", range(2, 5))]
    assert dealt([None, "gone", None], ["a", "b"]) == [("a", range(0, 2)), ("b", range(2, 3))]
    assert dealt([], ["a"]) == [("a", range(0, 0))]


def together(engine, tasks, on_event=None):
    """What each rank gives or raises, each called by a thread of its own as workers call them."""
    said = [None] * len(tasks)

    def one(k):
        try:
            said[k] = engine.run(tasks[k], on_event)
        except Exception as failure:
            said[k] = failure

    threads = [threading.Thread(target=one, args=(k,)) for k in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


def tasks_of(engine, folder, chunks, options, name="a"):
    parts = [engine.save(folder, given) for given in chunks]
    meet, key = engine.address("127.0.0.1"), engine.secret()
    return [engine.Task(name, meet, len(parts), k, key, part, True, dict(options)) for k, part in enumerate(parts)]


def test_ranks(engine, tmp_path):
    """Two ranks with rows and one without: the bytes of one process. Then all of them are ended: all
    of it can be done again."""
    import quern

    draw = np.random.default_rng(3)
    values, labels = draw.integers(0, 256, (300, 5)).astype("uint8"), draw.integers(0, 3, 300)
    options = dict(model="dense 6 relu; dense 3 softmax", batch=32, epochs=2, threads=1, devices="cpu")
    chunks = [[(values[:40], labels[:40], None), (values[40:110], labels[40:110], None)],
              [(values[110:], labels[110:], None)], [(values[:0], labels[:0], None)]]
    told = []
    results = together(engine, tasks_of(engine, tmp_path, chunks, options), lambda *event: told.append(event))
    alone = quern.train(values, labels, progress=False, **options)
    made = engine.outcome(results, [])
    assert [result.model for result in results] == [bytes(alone)] * 3
    assert made.load().digest == alone.digest and len(made.load().history) == 2 and made.load().report.items == 600
    assert [event.epoch for kind, event in told if kind == "epoch"] == [1, 2]

    ending = tasks_of(engine, tmp_path, chunks, {**options, "epochs": 100000}, "b")
    failures = together(engine, ending, lambda kind, _: kind == "epoch" and engine.end("b"))
    assert all(isinstance(failure, quern.QuernError) for failure in failures)
    assert any(isinstance(failure, engine.Lost) for failure in failures)
    assert engine.outcome([], failures) is None and not engine._running
    with pytest.raises(TypeError, match="no option 'epoch'"):
        engine.run(tasks_of(engine, tmp_path, chunks[:1], {"epoch": 1})[0])


def test_a_worker_that_ends(engine, tmp_path):
    """Its rank ends with it, although it waits for another one."""
    script = f"""
import sys
sys.path.insert(0, {str(python_package.folder())!r})
from quern import _engine
_engine.tell, tell = lambda *given: print(tell(*given) or "told", flush=True), _engine.tell
_engine.run(_engine.Task("a", _engine.address("127.0.0.1"), 2, 0, "k" * 16, _engine.Part(), True, {{}}))
"""
    worker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert worker.stdout.readline() == "told\n"
    worker.kill()
    worker.wait()
    assert worker.stderr.read() == ""  # it ends with the rank, which says nothing


def test_half_a_message(engine):
    """Of a rank that is ended while it tells something."""
    whole = io.BytesIO()
    engine.tell(whole, "epoch")
    sizes = 0, 5, 12, len(whole.getvalue())
    assert [engine.hear(io.BytesIO(whole.getvalue()[:size])) for size in sizes] == [None, None, None, "epoch"]
