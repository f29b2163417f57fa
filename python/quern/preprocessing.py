"""Scaling by exact statistics."""

import numpy as np

from . import _exact
from .estimator import _Tabular

try:
    from sklearn.base import TransformerMixin
except ImportError:
    class TransformerMixin:
        """The part of scikit-learn's protocol that needs nothing of it."""

        def fit_transform(self, X, y=None, **parameters):
            return self.fit(X, y, **parameters).transform(X)


class _Transformer(TransformerMixin, _Tabular):
    """What the transformers have in common."""

    def _names(self):
        """The names of the features of `fit`, as scikit-learn has them."""
        known = getattr(self, "feature_names_in_", None)
        return np.array([f"x{k}" for k in range(self.n_features_in_)], object) if known is None else known


class StandardScaler(_Transformer):
    """Subtracts the mean of each column and divides by its deviation.

    Mean and deviation are the exact numbers of the float32 values, rounded once to float64. So they
    depend on no order of the items, no number of threads and no processor.

    Parameters
    ----------
    with_mean, with_std : bool
        Whether to subtract the mean, and to divide by the deviation.
    threads : int, optional
        Cores of the CPU. They do not change the result.

    Attributes
    ----------
    mean_, var_, scale_ : ndarray
        float64: mean, variance (divided by the number of items) and deviation of each column. `scale_`
        is 1 where all values are equal. None where they are not used.
    n_samples_seen_ : int
        Items of `fit`.
    n_features_in_, feature_names_in_
        As for `Classifier`.

    Examples
    --------
    >>> from quern import StandardScaler
    >>> StandardScaler().fit_transform([[0.0], [2.0]])
    array([[-1.],
           [ 1.]])
    """

    def __init__(self, *, with_mean=True, with_std=True, threads=None):
        self.with_mean = with_mean
        self.with_std = with_std
        self.threads = threads

    def fit(self, X, y=None):
        """Finds means and deviations of items x features. `y` is not used.

        Returns
        -------
        StandardScaler
            Itself.
        """
        table = self._table(X, fitting=True)
        found = _exact.data_of(table).describe(quantiles=(), threads=self.threads or 0)
        deviation = found["population_deviation"]
        self.mean_ = found["mean"] if self.with_mean or self.with_std else None
        self.var_ = deviation * deviation if self.with_std else None
        self.scale_ = np.where(deviation > 0, deviation, 1.0) if self.with_std else None
        self.n_samples_seen_ = len(table.values)
        return self

    def transform(self, X):
        """The scaled values: float32 where `X` is, else float64."""
        self._need_fitted()
        values = self._table(X, fitting=False).values.astype(np.float64)
        if self.with_mean:
            values -= self.mean_
        if self.with_std:
            values /= self.scale_
        return values.astype(_kind(X), copy=False)

    def inverse_transform(self, X):
        """The values that `transform` makes `X` of, up to rounding."""
        self._need_fitted()
        values = self._table(X, fitting=False).values.astype(np.float64)
        if self.with_std:
            values *= self.scale_
        if self.with_mean:
            values += self.mean_
        return values.astype(_kind(X), copy=False)

    def get_feature_names_out(self, input_features=None):
        """The names of the columns that `transform` gives: those of `fit`."""
        self._need_fitted()
        return self._names()

    def __sklearn_is_fitted__(self):
        return hasattr(self, "n_samples_seen_")


def _kind(X):
    return np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
