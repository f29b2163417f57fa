"""quern.Classifier by scikit-learn's protocol, and without scikit-learn."""

import pickle
import warnings

import pytest

import python_package
from python_package import python

np = pytest.importorskip("numpy")

WITHOUT = """
import sys
sys.modules["sklearn"] = None
import numpy as np
from quern import Classifier
values = np.random.default_rng(1).normal(size=(100, 4))
labels = np.where(values[:, 0] > 0, "b", "a")
c = Classifier(epochs=20, seed=3).fit(values, labels)
print(c.score(values, labels) > 0.9, c.get_params()["seed"], c.classes_.tolist())
print(c.set_params(seed=4).seed)
"""


@pytest.fixture(scope="module")
def Classifier():
    python_package.folder()
    from quern import Classifier

    return Classifier


def table(items=120, features=4, classes=3):
    draw = np.random.default_rng(5)
    labels = draw.integers(0, classes, items)
    values = draw.normal(size=(items, features)) + 3 * np.eye(classes, features)[labels]
    return values, np.array(["ant", "bee", "cow"])[labels]


def test_it_works_without_scikit_learn():
    assert python(WITHOUT) == "True 3 ['a', 'b']\n4\n"


def test_classes_are_those_of_the_model(Classifier):
    """Class k of the network is classes_[k], and the outputs are in that order."""
    values, labels = table()
    c = Classifier(epochs=20).fit(values, labels)
    assert c.classes_.tolist() == ["ant", "bee", "cow"] and c.score(values, labels) > 0.9
    outputs = c.predict_proba(values)
    assert np.array_equal(c.classes_[outputs.argmax(1)], c.predict(values))
    assert np.allclose(outputs.sum(1), 1, atol=1e-5) and outputs.dtype == np.float32


def test_the_defaults_are_options_of_train(Classifier):
    """The documented defaults, written out, give the same bytes."""
    import quern

    values, labels = table()
    values = values.astype(np.float32)
    c = Classifier().fit(values, labels)
    made = quern.train(values, np.searchsorted(c.classes_, labels), scale="standard", lr=0.005,
                       model="dense 100 relu; dense 3 softmax", epochs=50, batch=30,
                       optimizer="adam")
    assert c.model_.digest == made.digest


def test_threads_do_not_change_the_bytes(Classifier):
    values, labels = table()
    digests = {Classifier(epochs=5, threads=t).fit(values, labels).model_.digest for t in (None, 1, 2)}
    assert len(digests) == 1


def test_pickles_predict_alike(Classifier):
    values, labels = table()
    c = Classifier(epochs=5).fit(values, labels)
    again = pickle.loads(pickle.dumps(c))
    assert again.model_.digest == c.model_.digest
    assert np.array_equal(again.predict(values), c.predict(values))


@pytest.mark.parametrize("values, labels, words", [
    ([[1.0], [np.nan]], [0, 1], "NaN"), ([[1.0], [1e39]], [0, 1], "infinity"),
    ([[1.0], [2.0]], [1, 1], "1 class"), ([[1.0], [2.0]], [0.5, 1.5], "continuous"),
    ([[1.0], [2.0]], [1], "2 items and y has 1"), ([1.0, 2.0], [0, 1], "Reshape")])
def test_refusals(Classifier, values, labels, words):
    with pytest.raises(ValueError, match=words):
        Classifier().fit(values, labels)


def test_columns_are_compared_by_name(Classifier):
    class Table:
        def __init__(self, columns):
            self.columns = columns

        def to_numpy(self):
            return table()[0]

    c = Classifier(epochs=2).fit(Table(["a", "b", "c", "d"]), table()[1])
    assert c.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="same order"):
        c.predict(Table(["a", "c", "b", "d"]))
    with pytest.raises(ValueError, match="now missing:\n- d"):
        c.predict(Table(["a", "b", "c", "e"]))


def test_two_classes_with_one_output(Classifier):
    values, labels = table(classes=2)
    c = Classifier("dense 20 relu; dense 1 sigmoid", loss="binary", epochs=20).fit(values, labels)
    outputs = c.predict_proba(values)
    assert outputs.shape == (120, 2) and np.allclose(outputs.sum(1), 1)
    assert np.array_equal(c.classes_[outputs.argmax(1)], c.predict(values))


def test_missing_values(Classifier):
    values, labels = table()
    values[::7, 1] = np.nan
    c = Classifier(missing="mean", epochs=20).fit(values, labels)
    assert c.score(values, labels) > 0.85
    with pytest.raises(ValueError, match="NaN"):
        Classifier().fit(values, labels)


def test_a_regressor(Classifier):
    import quern

    values, _ = table()
    y = values @ [1.0, -2, 0.5, 3] + 10
    r = quern.Regressor(epochs=50).fit(values, y)
    rest = y - r.predict(values)
    assert 1 - (rest**2).sum() / ((y - y.mean())**2).sum() > 0.95
    assert np.isclose(r.score(values, y), 1 - (rest**2).sum() / ((y - y.mean())**2).sum())
    assert np.array_equal(pickle.loads(pickle.dumps(r)).predict(values), r.predict(values))


@pytest.mark.parametrize("name, options", [("Classifier", {}), ("Regressor", {}),
                                           ("Classifier", {"missing": "mean"})])
def test_scikit_learn_s_own_checks(Classifier, name, options):
    pytest.importorskip("sklearn")
    from sklearn.utils.estimator_checks import check_estimator

    import quern

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(getattr(quern, name)(**options), on_fail=None)
    failed = {r["check_name"]: repr(r["exception"])[:200] for r in results
              if r["status"] not in ("passed", "skipped")}
    assert failed == {} and len(results) > 40


def test_pipelines_and_searches(Classifier):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    values, labels = table()
    pipe = make_pipeline(StandardScaler().set_output(transform="default"),
                         Classifier(epochs=20, scale="none"))
    assert cross_val_score(pipe, values, labels, cv=3).mean() > 0.85
    search = GridSearchCV(Classifier(epochs=10), {"lr": [1e-5, 0.01]}, cv=2).fit(values, labels)
    assert search.best_params_ == {"lr": 0.01}
    c = Classifier(epochs=3, seed=9, options={"beta1": 0.8}).fit(values, labels)
    assert clone(c).fit(values, labels).model_.digest == c.model_.digest
