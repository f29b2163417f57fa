"""Principal components and k-means, by exact sums."""

import warnings

import numpy as np

from . import _exact
from ._library import call
from .estimator import _Tabular
from .linear import ConvergenceWarning
from .model import _fitted
from .preprocessing import _Transformer, _kind

try:
    from sklearn.base import ClusterMixin
except ImportError:
    class ClusterMixin:
        """The part of scikit-learn's protocol that needs nothing of it."""

        def fit_predict(self, X, y=None):
            return self.fit(X).labels_


class PCA(_Transformer):
    """Principal components: the directions in which the items differ most.

    The covariances are exact numbers of the float32 values, rounded once to float64, and their
    eigenvectors are computed in a stated order. So the bytes depend on no order of the items, no
    number of threads and no processor. The time grows with the third power of the columns.

    Parameters
    ----------
    n_components : int, optional
        Components to keep. Default: as many as there are columns or items, whichever are fewer.
    threads : int, optional
        Cores of the CPU. They do not change the result.
    devices : str, optional
        Devices that may take part, as ``"cpu,cuda:0"``. They do not change the result.

    Attributes
    ----------
    components_ : ndarray
        float64, components x features, in order of their variance. Of each the number that is
        greatest in magnitude is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : ndarray
        float64: the variance along each component; its part of the whole; the root of the sum of
        its squares.
    mean_ : ndarray
        float64, of each column.
    model_ : Model
        The same for `Model.save` and other data.
    n_components_, n_samples_ : int
    n_features_in_, feature_names_in_
        As for `Classifier`.

    Examples
    --------
    >>> from quern import PCA
    >>> PCA(1).fit_transform([[0.0, 1.0], [2.0, 1.0]])
    array([[-1.],
           [ 1.]])
    """

    def __init__(self, n_components=None, *, threads=None, devices=None):
        self.n_components = n_components
        self.threads = threads
        self.devices = devices

    def fit(self, X, y=None):
        """Finds the components of items x features. `y` is not used.

        Returns
        -------
        PCA
            Itself.
        """
        table = self._table(X, fitting=True)
        items, features = table.values.shape
        if items < 2:
            raise ValueError("PCA needs two items or more, and this has n_samples=1")
        count = min(items, features) if self.n_components is None else self.n_components
        if not 1 <= count <= min(items, features) or int(count) != count:
            raise ValueError(f"n_components is a whole number from 1 to {min(items, features)}, and "
                             f"not {count!r}")
        self.model_, _ = _fitted("pca", _exact.data_of(table), self.devices, self.threads, components=int(count))
        axes, variances, means = map(self.model_.tensor, ("components", "variance", "mean"))
        whole = _exact.chain(variances[None], np.ones(features), 0.0)[0]
        self.components_, self.explained_variance_, self.mean_ = axes, variances[:len(axes)].copy(), means
        self.explained_variance_ratio_ = self.explained_variance_ / (whole if whole > 0 else 1.0)
        self.singular_values_ = np.sqrt(self.explained_variance_ * (items - 1))
        self.n_components_, self.n_samples_ = len(axes), items
        return self

    def transform(self, X):
        """The places of items along the components: float32 where `X` is, else float64."""
        self._need_fitted()
        values = self._table(X, fitting=False).values
        found = [_exact.chain(values, axis, 0.0, self.mean_) for axis in self.components_]
        return np.stack(found, 1).astype(_kind(X), copy=False)

    def inverse_transform(self, X):
        """The items at places along the components."""
        self._need_fitted()
        places = np.asarray(X)
        if places.ndim != 2 or places.shape[1] != self.n_components_:
            raise ValueError(f"X has the shape {places.shape}, and needs {self.n_components_} columns")
        found = [_exact.chain(places, weights, mean)
                 for weights, mean in zip(self.components_.T, self.mean_)]
        return np.stack(found, 1).astype(_kind(X), copy=False)

    def get_feature_names_out(self, input_features=None):
        """The names of the columns that `transform` gives: pca0, pca1, and so on."""
        self._need_fitted()
        return np.array([f"pca{k}" for k in range(self.n_components_)], object)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "components_")


class KMeans(ClusterMixin, _Transformer):
    """k-means: groups of items around their means.

    The first centres are drawn by greedy k-means++ with words of `seed`; each later one is the exact
    mean of its items, rounded once. So the bytes depend on no number of threads and no processor.
    Values are float32 and are not scaled.

    Parameters
    ----------
    n_clusters : int
        Groups.
    max_iter : int
        Times that the centres may move. ConvergenceWarning where they are too few.
    tol : float
        It ends when the sum of the squares of the movements of the centres is at most this times the
        mean of the columns' variances.
    n_init : int
        Starts, with `seed`, `seed` + 1 and so on. The result is that with the least `inertia_`, the
        first one of several.
    seed : int
        Of the first centres.
    threads : int, optional
        Cores of the CPU. They do not change the result.

    Attributes
    ----------
    cluster_centers_ : ndarray
        float64, clusters x features.
    labels_ : ndarray
        int32: the number of the group of each item of `fit`; with `Parts` of the rows of this rank.
    inertia_ : float
        The sum of the squares of the distances of the items from their centres.
    n_iter_ : int
        Times that the centres moved.
    model_ : Model
        The same for `Model.save` and other data.
    n_features_in_, feature_names_in_
        As for `Classifier`.

    Examples
    --------
    >>> from quern import KMeans
    >>> KMeans(2).fit([[0.0], [10.0], [1.0], [11.0]]).inertia_
    1.0
    """

    def __init__(self, n_clusters=8, *, max_iter=300, tol=1e-4, n_init=1, seed=1, threads=None):
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.seed = seed
        self.threads = threads

    def fit(self, X, y=None):
        """Finds the groups of items x features. `y` is not used.

        Returns
        -------
        KMeans
            Itself.
        """
        table = self._table(X, fitting=True)
        if self.n_init < 1:
            raise ValueError(f"n_init is a whole number from 1, and not {self.n_init!r}")
        if len(table.values) < self.n_clusters:
            raise ValueError(f"n_samples={len(table.values)} should be >= n_clusters={self.n_clusters}")
        whole = {"clusters": self.n_clusters, "iterations": self.max_iter, "seed": self.seed, "starts": self.n_init}
        for name, value in whole.items():
            if int(value) != value or value < 0:
                raise ValueError(f"{name} is a whole number, and not {value!r}")
        data = _exact.data_of(table)
        self.model_, result = _fitted("kmeans", data, None, self.threads, tolerance=float(self.tol),
                                      **{name: int(value) for name, value in whole.items()})
        self.cluster_centers_ = self.model_.tensor("centres")
        self.labels_ = self._nearest(getattr(data, "own", data))
        self.inertia_, self.n_iter_ = float(result.inertia), int(result.iterations)
        if not result.converged:
            warnings.warn(f"not converged after {result.iterations} iterations. Raise max_iter or tol",
                          ConvergenceWarning, stacklevel=2)
        return self

    def _nearest(self, data):
        cluster = np.empty(data.items, np.uint32)
        if data.items > 0:  # a rank may have none
            call("qn_kmeans_assign", data._address, len(self.cluster_centers_),
                 _exact.pointer(self.cluster_centers_), self.threads or 0, _exact.pointer(cluster, np.uint32))
        return cluster.astype(np.int32)

    def predict(self, X):
        """The number of the nearest centre for each item, int32."""
        self._need_fitted()
        return self._nearest(_exact.data_of(self._table(X, fitting=False)))

    def transform(self, X):
        """The distances of items from the centres: float32 where `X` is, else float64."""
        self._need_fitted()
        values = self._table(X, fitting=False).values
        return np.stack([np.sqrt(_exact.squares(values, centre)) for centre in self.cluster_centers_],
                        1).astype(_kind(X), copy=False)

    def score(self, X, y=None):
        """The sum of the squares of the distances of items from their nearest centres, times -1."""
        squares = self.transform(np.asarray(self._table(X, fitting=False).values, np.float64)) ** 2
        return -float(squares.min(1).sum())

    def get_feature_names_out(self, input_features=None):
        """The names of the columns that `transform` gives: kmeans0, kmeans1, and so on."""
        self._need_fitted()
        return np.array([f"kmeans{k}" for k in range(len(self.cluster_centers_))], object)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "cluster_centers_")
