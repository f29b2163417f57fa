"""quern.LogisticRegression beside scikit-learn's, and the optimiser lbfgs of quern.train."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import machine
import python_package
from python_package import python

np = pytest.importorskip("numpy")

WITHOUT = """
import sys
sys.modules["sklearn"] = None
import numpy as np
from quern import LogisticRegression
values = np.random.default_rng(1).normal(size=(100, 4))
labels = np.where(values[:, 0] > 0, "b", "a")
c = LogisticRegression(C=10).fit(values, labels)
print(c.score(values, labels) > 0.95, c.coef_.shape, c.intercept_.shape, c.classes_.tolist(), hasattr(c, "partial_fit"))
"""


@pytest.fixture(scope="module")
def package():
    python_package.folder()
    import quern

    return quern


def standard(name):
    """A data set of scikit-learn, standardised, as float32."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    deviation = X.std(0)
    return ((X - X.mean(0)) / np.where(deviation > 0, deviation, 1)).astype(np.float32), y


def theirs(X, y, **options):
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # words of its versions
        return LogisticRegression(**options).fit(X.astype(np.float64), y)


def differ(ours, other):
    return max(np.abs(ours.coef_ - other.coef_).max(), np.abs(ours.intercept_ - other.intercept_).max())


def test_it_works_without_scikit_learn():
    assert python(WITHOUT) == "True (1, 4) (1,) ['a', 'b'] False\n"


@pytest.mark.parametrize("name", ["breast_cancer", pytest.param("digits", marks=machine.LONG), "iris", "wine"])
def test_coefficients_are_those_of_scikit_learn(package, name):
    X, y = standard(name)
    ours = package.LogisticRegression(tol=1e-8, max_iter=400).fit(X, y)
    other = theirs(X, y, tol=1e-9, max_iter=4000)
    assert differ(ours, other) < 1e-4 and ours.score(X, y) == other.score(X, y)
    assert 10 < ours.n_iter_[0] < 400 and ours.model_.report.converged
    assert differ(package.LogisticRegression(C=2, tol=1e-8, max_iter=400).fit(X, y), other) > 1e-3


def test_weights_and_no_penalty(package):
    X, y = standard("breast_cancer")
    weights = np.random.default_rng(2).uniform(0.2, 3, len(y))
    some = dict(class_weight="balanced", C=0.3)
    ours = package.LogisticRegression(tol=1e-8, max_iter=400, **some).fit(X, y, weights)
    assert differ(ours, theirs(X, y, tol=1e-9, max_iter=4000, class_weight={
        k: weights.sum() / 2 / weights[y == k].sum() for k in (0, 1)}, C=0.3)) > 1e-3  # without weights
    from sklearn.linear_model import LogisticRegression
    own = {k: weights.sum() / 2 / weights[y == k].sum() for k in (0, 1)}
    other = LogisticRegression(class_weight=own, C=0.3, tol=1e-9, max_iter=4000).fit(X.astype(float), y, weights)
    assert differ(ours, other) < 1e-4
    noisy = np.where(np.random.default_rng(3).random(len(y)) < 0.2, 1 - y, y)
    ours = package.LogisticRegression(None, tol=1e-7, max_iter=400).fit(X[:, :5], noisy)
    assert differ(ours, theirs(X[:, :5], noisy, C=np.inf, tol=1e-9, max_iter=4000)) < 1e-3


def test_without_an_intercept(package):
    for name in "iris", "breast_cancer":
        X, y = standard(name)
        X = X[:, :6] + np.float32(0.5)
        ours = package.LogisticRegression(tol=1e-7, max_iter=400, fit_intercept=False).fit(X, y)
        other = theirs(X, y, tol=1e-9, max_iter=4000, fit_intercept=False)
        assert differ(ours, other) < 1e-4 and (ours.intercept_ == 0).all()
        assert ours.model_.recipe["no_intercept"] == 1
        decided, known = ours.decision_function(X), other.decision_function(X.astype(float))
        assert decided.shape == known.shape and np.abs(decided - known).max() < 1e-2
        found = ours.classes_[decided.argmax(1)] if decided.ndim > 1 else ours.classes_[(decided > 0) * 1]
        assert (found == ours.predict(X)).all()
        assert np.abs(np.exp(ours.predict_log_proba(X)) - ours.predict_proba(X)).max() < 1e-6


def test_l1_has_the_same_zeros(package):
    X, y = standard("wine")
    ours = package.LogisticRegression("l1", C=0.2, tol=1e-6, max_iter=400).fit(X, y)
    other = theirs(X, y, penalty="l1", C=0.2, solver="saga", tol=1e-7, max_iter=20000)
    assert np.abs(ours.coef_ - other.coef_).max() < 1e-4
    assert ((ours.coef_ == 0) == (other.coef_ == 0)).all() and (ours.coef_ == 0).sum() > 10


def test_scikit_learn_s_own_checks(package):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(package.LogisticRegression(), on_fail=None)
    failed = {r["check_name"]: repr(r["exception"])[:200] for r in results
              if r["status"] not in ("passed", "skipped")}
    assert failed == {} and len(results) > 40


def test_threads_and_wrong_parameters(package):
    X, y = standard("iris")
    digests = {package.LogisticRegression(threads=t).fit(X, y).model_.digest for t in (1, 2, None)}
    assert len(digests) == 1
    for wrong in {"penalty": "l3"}, {"C": 0}, {"C": float("nan")}, {"class_weight": "even"}, {"max_iter": 0}, {"tol": 0}:
        with pytest.raises((ValueError, package.QuernError)):
            package.LogisticRegression(**wrong).fit(X, y)
    with pytest.warns(Warning, match="not converged after 2 iterations"):
        package.LogisticRegression(max_iter=2).fit(X, y)


def test_an_interrupted_training_goes_on_with_its_history(run_quern, tmp_path):
    """The checkpoint has the pairs of L-BFGS: the bytes are those of a training in one go."""
    def run(epochs, *more):
        run_quern("train", "--optimizer", "lbfgs", "--model", "dense 5 tanh; dense 3 softmax", "--l1", "0.001", "--data",
                  data, "--tolerance", "1e-6", "--epochs", epochs, "--quiet", "-o", tmp_path / "m", *more)
        return (tmp_path / "m").read_bytes()
    draw = np.random.default_rng(5)
    data = tmp_path / "d.csv"
    rows = [f"{draw.integers(3)},{a},{b}" for a, b in draw.normal(size=(90, 2))]
    data.write_text("y,a,b\n" + "\n".join(rows) + "\n")
    whole, there = run(30), ["--checkpoint", tmp_path / "c"]
    assert run(17, *there) != whole
    assert run(30, *there, "--resume") == whole
    assert run(30, "--threads", "1", "--grain", "32") == whole


def test_no_intercept_in_the_oracle(run_quern, tmp_path):
    draw, data = np.random.default_rng(7), tmp_path / "d.csv"
    rows = [f"{int(a + b > 1)},{a:.3f},{b:.3f}" for a, b in draw.normal(1, 1, (40, 2))]
    data.write_text("y,a,b\n" + "\n".join(rows) + "\n")
    words = ["--data", data, "--label", "y", "--optimizer", "lbfgs", "--no-intercept", "--model", "dense 1 sigmoid",
             "--loss", "binary", "--scale", "none", "--l1", "0.01", "--epochs", 4, "--seed", 1, "--grain", 8]
    run_quern("train", *words, "--quiet", "-o", tmp_path / "ours")
    oracle = Path(__file__).parent / "oracle" / "oracle.py"
    subprocess.run([sys.executable, oracle, *map(str, words), "-o", tmp_path / "theirs"], check=True, capture_output=True)
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
