"""quern.Ridge, Lasso, StandardScaler, PCA and KMeans beside scikit-learn's, and beside docs/exactness.md 20."""

import sys
import warnings
from pathlib import Path

import pytest

import machine
import python_package
from python_package import python

np = pytest.importorskip("numpy")

sys.path.insert(0, str(Path(__file__).parent / "oracle"))

WITHOUT = """
import sys
sys.modules["sklearn"] = None
import numpy as np
import quern
X = np.random.default_rng(1).normal(size=(50, 3))
y = X @ [1.0, 2.0, 3.0] + 4
print(quern.Ridge(0).fit(X, y).score(X, y) > 0.999, quern.Lasso(0.01).fit(X, y).n_iter_ > 1,
      abs(quern.StandardScaler().fit_transform(X).std(0) - 1).max() < 1e-6,
      quern.PCA(2).fit_transform(X).shape, set(quern.KMeans(2).fit_predict(X).tolist()))
"""


@pytest.fixture(scope="module")
def package():
    python_package.folder()
    import quern

    return quern


@pytest.fixture(scope="module")
def diabetes():
    X, y = pytest.importorskip("sklearn.datasets").load_diabetes(return_X_y=True)
    return X.astype(np.float32), y


def test_they_work_without_scikit_learn():
    assert python(WITHOUT) == "True True True (50, 2) {0, 1}\n"


@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_are_those_of_scikit_learn(package, diabetes, intercept):
    from sklearn.linear_model import Lasso, Ridge

    X, y = diabetes
    for alpha in 0.01, 1:
        pairs = [(package.Ridge(alpha, fit_intercept=intercept), Ridge(alpha, fit_intercept=intercept)),
                 (package.Lasso(alpha, fit_intercept=intercept, tol=1e-10, max_iter=9999),
                  Lasso(alpha, fit_intercept=intercept, tol=1e-10, max_iter=9999))]
        for ours, theirs in pairs:
            ours.fit(X, y), theirs.fit(X.astype(float), y)
            assert np.abs(ours.coef_ - theirs.coef_).max() < 1e-6 < np.abs(ours.coef_).max()
            assert abs(ours.intercept_ - theirs.intercept_) < 1e-6
            assert ours.score(X, y) == pytest.approx(theirs.score(X.astype(float), y), abs=1e-9)
        assert ((ours.coef_ == 0) == (theirs.coef_ == 0)).all() and ours.n_iter_ > 1


def test_the_bytes_are_those_of_the_text(package):
    import linear

    draw = np.random.default_rng(4)
    X = draw.normal(1, 2, (40, 5)).astype(np.float32)
    X[:, 4] = X[:, 3] + draw.normal(0, 1, 40)
    y = (X @ draw.normal(size=5) + draw.normal(size=40)).astype(np.float32)
    columns = [*X.T, y]
    for intercept in True, False:
        for threads in 1, 2:
            some = {"fit_intercept": intercept, "threads": threads}
            ours = package.Ridge(0.3, **some).fit(X, y)
            assert (ours.coef_.tolist(), ours.intercept_) == linear.ridge(columns, 0.3, intercept)
            ours = package.Lasso(0.2, tol=1e-5, **some).fit(X, y)
            assert ((ours.coef_.tolist(), ours.intercept_, ours.n_iter_, ours.dual_gap_) ==
                    linear.lasso(columns, 0.2, 1e-5, 1000, intercept))
    order = draw.permutation(40)
    assert (package.Ridge(0.3).fit(X[order], y[order]).coef_ == package.Ridge(0.3).fit(X, y).coef_).all()


def test_scaler(package):
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(1).normal(5, 3, (300, 4)).astype(np.float32)
    X[:, 2] = 7
    for some in {}, {"with_mean": False}, {"with_std": False}:
        ours, theirs = package.StandardScaler(**some).fit(X), StandardScaler(**some).fit(X.astype(float))
        scaled = ours.transform(X.astype(float))
        assert np.abs(scaled - theirs.transform(X.astype(float))).max() < 1e-9
        assert np.abs(ours.inverse_transform(scaled) - X).max() < 1e-5
        assert ours.transform(X).dtype == np.float32
    assert ours.mean_ is not None and ours.scale_ is None and ours.var_ is None


def test_components(package, diabetes):
    from sklearn.decomposition import PCA

    import structure

    X = diabetes[0][:, :7] * np.arange(1, 8, dtype=np.float32)
    ours, theirs = package.PCA(4).fit(X), PCA(4).fit(X.astype(float))
    for name in "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_":
        assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() < 1e-9
    places = ours.transform(X.astype(float))
    assert np.abs(places - theirs.transform(X.astype(float))).max() < 1e-9
    assert np.abs(ours.inverse_transform(places) - theirs.inverse_transform(places)).max() < 1e-9
    few = X[:30, :5]
    variances, rows = structure.components(list(few.T))
    for threads in 1, 2:
        ours = package.PCA(threads=threads).fit(few)
        assert (ours.explained_variance_.tolist(), ours.components_.tolist()) == (variances, rows)


def test_clusters(package):
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_iris

    import structure

    X = load_iris(return_X_y=True)[0].astype(np.float32)
    ours = package.KMeans(3, tol=0).fit(X)
    theirs = KMeans(3, init=ours.cluster_centers_, n_init=1, tol=0).fit(X.astype(float))
    assert np.abs(ours.cluster_centers_ - theirs.cluster_centers_).max() < 1e-9
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9) and (ours.labels_ == theirs.labels_).all()
    assert np.abs(ours.transform(X.astype(float)) - theirs.transform(X.astype(float))).max() < 1e-6
    draw = np.random.default_rng(3)
    blobs = np.vstack([draw.normal(0, 1, (200, 2)) + 8 * np.array(c) for c in ((0, 0), (0, 1), (1, 0), (1, 1))])
    assert sorted(np.bincount(package.KMeans(4).fit_predict(blobs))) == [200] * 4
    few = draw.normal(size=(36, 3)).astype(np.float32)
    few[:20] = few[0]  # more equal items than others
    for clusters, tol in (4, 1e-4), (7, 0.01), (19, 0):  # the last has more clusters than items that differ
        want = structure.kmeans(few.astype(float).tolist(), clusters, 5, tol, 300)
        for threads in 1, 2:
            ours = package.KMeans(clusters, seed=5, tol=tol, threads=threads).fit(few)
            assert (ours.cluster_centers_.tolist(), ours.labels_.tolist(), ours.inertia_, ours.n_iter_) == want
            assert (ours.predict(few) == ours.labels_).all()
    assert (package.KMeans(3, n_init=5).fit(X).inertia_ <= package.KMeans(3).fit(X).inertia_)


@pytest.mark.parametrize("name", ["Ridge", "KMeans", *(pytest.param(name, marks=machine.LONG) for name in ("Lasso", "PCA", "StandardScaler"))])
def test_scikit_learn_s_own_checks(package, name):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(getattr(package, name)(), on_fail=None)
    failed = {r["check_name"]: repr(r["exception"])[:200] for r in results
              if r["status"] not in ("passed", "skipped")}
    assert failed == {} and len(results) > 40


def test_what_is_refused(package):
    X, y = np.eye(4), np.arange(4.0)
    with pytest.raises(package.NumericError, match="depend on one another.*greater alpha"):
        package.Ridge(0).fit(np.hstack([X[:, :1], X[:, :1]]), y)
    for wrong in {"alpha": -1}, {"alpha": float("nan")}, {"tol": -1}, {"max_iter": 0}, {"threads": -1}:
        with pytest.raises((ValueError, package.QuernError), match=list(wrong)[0].replace("tol", "tolerance").replace("max_iter", "iterations")):
            package.Lasso(**wrong).fit(X, y)
    with pytest.warns(Warning, match="not converged after 1 passes"):
        package.Lasso(0.01, max_iter=1, tol=1e-12).fit(X + 0.3 * X[::-1] + 0.2, y)
    with pytest.raises(ValueError, match="texts or categories"):
        package.Ridge().fit(pytest.importorskip("pandas").DataFrame({"a": list("abab")}), y)
    for wrong in {"n_clusters": 0}, {"n_clusters": 5}, {"max_iter": 0}, {"tol": -1}, {"n_init": 0}, {"seed": -1}:
        with pytest.raises((ValueError, package.QuernError), match=list(wrong)[0].replace("tol", "tolerance").replace("max_iter", "iterations").replace("n_clusters", "clusters")):
            package.KMeans(**{"n_clusters": 2, **wrong}).fit(X)
    with pytest.raises(ValueError, match="from 1 to 4, and not 5"):
        package.PCA(5).fit(X)


def test_a_fitted_model_is_a_file(package, tmp_path):
    """`model_` of each estimator: its file, loaded again, gives what the estimator gives."""
    import pickle

    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.random.default_rng(3).normal(size=(90, 3)).round(3), columns=["a", "b", "c"])
    y = table @ [1.0, -2.0, 0.5]
    table.assign(extra="text").iloc[:, ::-1].to_csv(tmp_path / "t.csv", index=False)
    for ours, kind in ((package.KMeans(3, n_init=2), "kmeans"), (package.PCA(2), "pca"), (package.Ridge(0.5), "ridge"),
                       (package.Lasso(0.01), "lasso")):
        ours.fit(table, y)
        ours.model_.save(tmp_path / "m")
        made = package.load(tmp_path / "m")
        assert made.kind == kind and kind in repr(made) and made.names == ["a", "b", "c"] and made.layers == []
        assert made.digest == ours.model_.digest == pickle.loads(pickle.dumps(ours)).model_.digest
        labels = (y,) if kind in ("ridge", "lasso") else ()
        for data in table, table.to_numpy():  # arrays have no names, and the recipe has
            assert package.replay(made, data, *labels).digest == made.digest
        with pytest.raises(package.MismatchError, match="not the data"):
            package.replay(made, table + 1, *labels)
        want = (ours.transform if kind == "pca" else ours.predict)(table)
        for data in table, table.iloc[:, ::-1], tmp_path / "t.csv":
            more = {"unlabelled": True} if data is not table and hasattr(data, "exists") else {}
            found = made.predict(data, **more)
            assert found.dtype == (np.int32 if kind == "kmeans" else np.float32)
            assert (found == want.astype(found.dtype)).all()
    assert (package.load(tmp_path / "m").tensor("coefficients") == ours.coef_).all()
    found = package.KMeans(3).fit(table)
    assert (found.model_.predict(table, outputs=True) == found.transform(table).astype(np.float32)).all()
    assert found.model_.evaluate(table)["inertia"] == found.inertia_
    with pytest.raises(package.UnsupportedError, match="ONNX file needs a network, and this is a k-means model"):
        found.model_.save_onnx(tmp_path / "x")
    with pytest.raises(package.UsageError, match="fitted to data alone"):
        package.replay(found.model_, table, valid=0.1)
    with pytest.raises(KeyError):
        found.model_.tensor("mean")
