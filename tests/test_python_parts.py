"""Python: quern.Parts. What ranks find and train with a part each is what one process does with all rows."""

import os
import signal

import pytest

import python_package
import ranks
import test_python_ranks

np = pytest.importorskip("numpy")

SCRIPT = """
import os, shutil, signal, numpy as np, quern
count, own = int(os.environ["COUNT"]), int(os.environ["OWN"])
if count > 1:
    quern.ranks.join("127.0.0.1:" + os.environ["PORT"], count, own)
draw = np.random.default_rng(3)
cuts = [0, 300, 300, 420, 700][:count] + [700]     # rank 1 has no rows
rows = slice(cuts[own], cuts[own + 1])
make = quern.Parts if count > 1 else quern.Data

table = np.stack([draw.choice(list("zyxw"), 700), draw.normal(size=700), draw.integers(0, 99, 700)], 1, dtype=object)
table[:300, 0][table[:300, 0] == "w"] = "x"        # a category that a later part has alone
classes = draw.choice(["low", "high", "mid"], 700)
whole = make(table[rows], classes[rows])
model = quern.train(whole, model="dense 8 relu; dense 3 softmax", epochs=2, batch=64, threads=1, valid=0.2)
found = whole.describe(by_class=True, correlation=True)
print(len(whole), whole.digest, model.digest, [found[k].tolist() for k in ("mean", "quantiles", "covariance")])

bytes = draw.integers(0, 256, (700, 5), np.uint8)
real = np.where(np.arange(700) < 300, 7.0, np.round(draw.normal(size=700), 1))    # whole numbers on rank 0
real[0] = -3
values = bytes.astype(np.float32) + (np.arange(700) >= 420)[:, None] * np.float32(0.5)
some = make((bytes if own == 0 and count > 1 else values)[rows], real[rows])
ridge = quern.fit("ridge", some, alpha=0.5)
axes = quern.fit("pca", some, components=2)         # of a table with real labels
print(some.digest, ridge.digest, axes.digest, ridge.evaluate(some), model.evaluate(whole))
plain = make(values[rows], classes[rows])
groups, logits = quern.KMeans(3).fit(some), quern.LogisticRegression(max_iter=4, threads=1).fit(plain)
assert len(groups.labels_) == len(range(700)[rows]) == len(logits.predict(plain.own if count > 1 else plain))
net = quern.Classifier("dense {classes} softmax", epochs=1, threads=1).fit(plain)
print([x.tolist() for x in (groups.cluster_centers_, logits.coef_, net.classes_, quern.PCA(2).fit(some).components_,
                            quern.Ridge(0.5).fit(some).coef_, quern.StandardScaler().fit(some).mean_)], net.model_.digest)
if shutil.which("cc"):
    kernel = quern.Kernel(text='''INDEX(y, x); INPUT(uint8_t, a); HALO(float, u, 1, wrap); WHOLE(double, t, 1);
        OUTPUT(float, next); NEXT(next, u); SUM(double, s);
        KERNEL { next = u(-1, 0) * 0.5f + a; s = t(y % length(t, 0)); }''')
    given = {"a": bytes[rows], "u": values[rows], "t": real[rows], "iterations": 3}
    given.update({"parts": ["a", "u", "t"]} if count > 1 else {})
    path = os.path.join(os.environ["FOLDER"], f"next{count}.npy")
    print(kernel.run(**given, next=path).s, np.load(path).sum(dtype=float))
    rooms = np.full((700, 5), 9, np.float32)
    assert kernel.run(**given, next=rooms[rows]).next.tobytes() == np.load(path)[rows].tobytes()
    assert (rooms[:rows.start] == 9).all() and (rooms[rows.stop:] == 9).all()
if count > 1:
    files = [os.path.join(os.environ["FOLDER"], name) for name in ("a.npy", "b.npy")]
    assert quern.Parts(files).digest == quern.Data(np.concatenate([np.load(file) for file in files])).digest
    assert np.array_equal(model.predict(whole.own), model.predict(whole)[cuts[own]:cuts[own + 1]])
    assert len(quern.Parts([] if own == 0 else files[own % 2])) == 31 + 9 + 31
    half = quern.Data(bytes[rows]).split([0.5, 0.5])[0] if own != 1 else None
    assert len(quern.Parts(half)) == 350
    assert np.array_equal(whole.values[whole.first:][:len(whole.own)], whole.own.values)
    assert len(whole.own) == cuts[own + 1] - cuts[own] and whole.own.classes == 3

    def refused(data, **more):
        try:
            quern.Parts(data, **more)
        except Exception as why:
            return f"{type(why).__name__}: {why}".replace("\\n", " ")

    print("!", refused([[1.0, float("inf")]] if own == 0 else bytes))
    print("!", refused(bytes, task="classify" if own == 2 else None))
    print("!", refused("a.npy" if own == 2 else bytes))
    lost = quern.Parts(values[rows], real[rows])
    kept = quern.Parts(values[rows], real[rows], copies=2)
    if own == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    after = [quern.train(data, model="dense 1", epochs=1).digest for data in (kept, quern.Data(values, real))]
    assert after[0] == after[1] and ridge.evaluate(kept) == ridge.evaluate(quern.Data(values, real))
    try:
        model.evaluate(whole)
    except quern.QuernError as why:
        print("!", type(why).__name__, why)
    try:
        quern.train(lost, model="dense 1", epochs=1)
    except quern.QuernError as why:
        print("!", type(why).__name__, why)
    try:
        lost.values                                 # 0 for rows of rank 2 that were touched
    except quern.FileError as why:
        print("!", type(why).__name__, why)
"""


def test_parts_in_memory(tmp_path):
    """Of unequal sizes, and one without rows; then failures of a rank, and a rank that is lost with its rows, or
    whose rows have a copy."""
    for name, rows in ("a", 9), ("b", 31):
        np.save(tmp_path / f"{name}.npy", np.arange(rows * 3, dtype=np.float32).reshape(rows, 3) / 7)
    package, port = str(python_package.folder()), str(ranks.free_port())

    def environment(count):
        return lambda rank: {**os.environ, "PYTHONPATH": package, "FOLDER": str(tmp_path), "COUNT": str(count),
                             "OWN": str(rank), "PORT": port}

    [(code, want, err)] = test_python_ranks.started(1, environment(1), SCRIPT)
    assert code == 0, err
    done = test_python_ranks.started(4, environment(4), SCRIPT)
    assert [code for code, _, _ in done] == [0, 0, -signal.SIGKILL, 0], done
    for rank, (_, out, err) in enumerate(done):
        lines = out.splitlines()
        assert [line for line in lines if line[0] != "!"] == want.splitlines(), err
        said = [line for line in lines if line[0] == "!"]
        assert "InputError: item 0, feature 1: " in said[0] and ("rank 0 on " in said[0]) == (rank > 0)
        assert "MismatchError: rank 2 on " in said[1] and "task='classify', not task=None" in said[1]
        assert "in the parts: files, not tables" in said[2]
        if rank != 2:
            assert "FileError a table in memory: rank 2 on " in said[3]
            assert "has ended, and its part of the data is missing" in said.pop(3)
            assert "FileError a table in memory: " in said[3] and "rank 2 on " in said[3]
            assert "no other rank can read its part: it was in the memory of that rank" in said[3]
            assert "FileError" in said[4] and "RuntimeWarning: numbers of other ranks" in err, err
