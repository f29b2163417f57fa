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
    made = quern.train(values, np.searchsorted(c.classes_, labels), scale="standard", lr=0.01,
                       model="dense 64 relu; dense 32 relu; dense 3 softmax", epochs=67, batch=8,
                       optimizer="adamw", weight_decay=1, schedule="cosine")
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


def weighted_table():
    """Items with whole weights, of which some are 0, in an order of their own; and repeated items."""
    draw = np.random.default_rng(7)
    values, labels = table()
    weights = draw.integers(0, 4, len(values))
    assert set(labels[weights > 0]) == set(labels)
    order = draw.permutation(len(values))
    repeated = np.repeat(values, weights, axis=0), np.repeat(labels, weights)
    return (values[order], labels[order], weights[order]), repeated


@pytest.mark.parametrize("name", ["Classifier", "Regressor"])
def test_whole_weights_are_repeated_items(Classifier, name):
    """To the bit, whatever the order of the items."""
    import quern

    def fitted(values, labels, weights=None):
        y = labels if name == "Classifier" else np.searchsorted(["ant", "bee", "cow"], labels) / 3
        return getattr(quern, name)(epochs=5).fit(values, y, sample_weight=weights)

    weighted, repeated = weighted_table()
    want = fitted(*repeated)
    assert fitted(*weighted).model_.digest == want.model_.digest
    assert fitted(weighted[0], weighted[1]).model_.digest != want.model_.digest
    turned = [part[::-1] for part in repeated]
    assert fitted(*turned, np.ones(len(turned[0]))).model_.digest == want.model_.digest


def test_what_was_fitted_can_be_replayed(Classifier):
    """Also where items were put in order, or repeated."""
    import quern

    for values, labels, weights in (*[part for part in weighted_table()[:1]],
                                    (*table(), np.linspace(0, 1, 120)), (*table(), None)):
        c = Classifier(epochs=3).fit(values, labels, weights)
        again = quern.replay(c.model_, c.data(values, labels, weights))
        assert again.digest == c.model_.digest
        r = quern.Regressor(epochs=3).fit(values, values[:, 0], weights)
        assert quern.replay(r.model_, r.data(values, values[:, 0], weights)).digest == r.model_.digest
    with pytest.raises(ValueError, match="not fitted"):
        Classifier().data(values, labels)


def test_other_weights_are_the_library_s(Classifier):
    import quern

    values, labels = table()
    values = values.astype(np.float32)
    weights = np.random.default_rng(3).random(len(values)) + 0.1
    weights[::5] = 0
    there = weights > 0
    c = Classifier(epochs=5, batch=30).fit(values, labels, sample_weight=weights)
    data = quern.Data(values[there], np.searchsorted(c.classes_, labels[there]),
                      weights=weights[there])
    made = quern.train(data, scale="standard", epochs=5, batch=30)
    assert c.model_.digest == made.digest
    assert np.array_equal(data.weights, weights[there].astype(np.float32))
    left = Classifier(epochs=5, batch=30).fit(values[there], labels[there], weights[there])
    assert left.model_.digest == made.digest
    plain = Classifier(epochs=5, batch=30).fit(values, labels)
    assert plain.model_.digest != made.digest
    equal = Classifier(epochs=5, batch=30).fit(values, labels, np.full(len(values), 0.7))
    assert equal.model_.digest == plain.model_.digest


def test_weights_count(Classifier):
    """Where classes cannot be told apart, the heavier one is predicted."""
    values = np.zeros((40, 2))
    labels = np.arange(40) % 2
    for heavy in (0, 1):
        c = Classifier(epochs=200).fit(values, labels, np.where(labels == heavy, 1.5, 0.5))
        assert (c.predict(values) == heavy).all()
        assert np.allclose(c.predict_proba(values)[0, heavy], 0.75, atol=0.02)
        c = Classifier(epochs=200, class_weight={heavy: 3}).fit(values, labels)
        assert np.allclose(c.predict_proba(values)[0, heavy], 0.75, atol=0.02)
    c = Classifier(epochs=200, class_weight="balanced").fit(values, np.arange(40) < 10)
    assert np.allclose(c.predict_proba(values)[0], 0.5, atol=0.02)


def test_class_weights_are_those_of_the_command(Classifier):
    import quern

    values, labels = table()
    values = values.astype(np.float32)
    numbers = np.searchsorted(["ant", "bee", "cow"], labels)
    for given, text in (({"bee": 2.5, "cow": 0.1}, "1=2.5,2=0.1"), ("balanced", "balanced")):
        c = Classifier(epochs=5, batch=30, class_weight=given).fit(values, labels)
        made = quern.train(values, numbers, scale="standard", epochs=5, batch=30, class_weight=text)
        assert c.model_.digest == made.digest


@pytest.mark.parametrize("weights, words", [
    ([1, -1], "negative"), ([1, np.inf], "not a finite"), ([1, 1e39], "not a finite"),
    ([0, 0], "all zero"), ([1, 2, 3], "2 items"), ([[1, 2]], "2 items"), ([0, 1], "1 class")])
def test_weights_that_are_refused(Classifier, weights, words):
    with pytest.raises(ValueError, match=words):
        Classifier().fit([[1.0], [2.0]], ["a", "b"], sample_weight=weights)


@pytest.mark.parametrize("given, words", [
    ("even", "balanced"), (3, "balanced"), ({"a": 2, "c": 1}, "not in y")])
def test_class_weights_that_are_refused(Classifier, given, words):
    with pytest.raises(ValueError, match=words):
        Classifier(class_weight=given).fit([[1.0], [2.0]], ["a", "b"])


def test_partial_fit_goes_on(Classifier):
    """Each call is a training from the model before, with the scaling of the first call."""
    import quern

    values, labels = table()
    values = values.astype(np.float32) * 10 + 500
    classes = ["ant", "bee", "cow"]
    numbers = np.searchsorted(classes, labels)
    c = Classifier(batch=10)
    model = None
    for first in range(0, 120, 40):
        part = slice(first, first + 40)
        c.partial_fit(values[part], labels[part], classes if model is None else None)
        options = {"model": "dense 64 relu; dense 32 relu; dense 3 softmax", "epochs": 1, "batch": 10}
        how = {"scale": "standard"} if model is None else {"init_from": model, "init_scale": "keep"}
        model = quern.train(values[part], numbers[part], **options, **how)
        assert c.model_.digest == model.digest
    for _ in range(10):
        c = pickle.loads(pickle.dumps(c)).partial_fit(values, labels)
    assert c.score(values, labels) > 0.9
    r = quern.Regressor()
    for _ in range(30):
        r.partial_fit(values, values[:, 0])
    assert r.score(values, values[:, 0]) > 0.8


def test_what_partial_fit_refuses(Classifier):
    values, labels = table()
    with pytest.raises(ValueError, match="classes must be passed"):
        Classifier().partial_fit(values, labels)
    with pytest.raises(ValueError, match="not among"):
        Classifier().partial_fit(values, labels, classes=["ant", "bee"])
    with pytest.raises(ValueError, match="balanced"):
        Classifier(class_weight="balanced").partial_fit(values, labels, classes=["ant", "bee", "cow"])
    c = Classifier().partial_fit(values[:1], labels[:1], classes=["ant", "bee", "cow"])
    with pytest.raises(ValueError, match="first call"):
        c.partial_fit(values, labels, classes=["ant", "bee"])
    with pytest.raises(ValueError, match="features"):
        c.partial_fit(values[:, :2], labels)


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
