"""Linear regression with penalties, by exact sums over the items."""

import warnings

import numpy as np

from . import _exact
from .data import Data
from .estimator import RegressorMixin, _only, _Tabular, _vector
from .linear import ConvergenceWarning
from .model import _fitted


class _Penalised(RegressorMixin, _Tabular):
    """What Ridge and Lasso have in common."""

    def _fit(self, kind, X, y, **more):
        table, targets = self._table(X, fitting=True), None
        if not isinstance(_only(X, y) if isinstance(X, Data) else X, Data):
            with np.errstate(over="ignore"):
                targets = _vector(y, len(table.values)).astype(np.float32)
        self.model_, report = _fitted(kind, _exact.data_of(table, targets), self.devices, self.threads,
                                      alpha=float(self.alpha), intercept=int(bool(self.fit_intercept)), **more)
        self.coef_ = self.model_.tensor("coefficients")
        self.intercept_ = float(self.model_.tensor("intercept")[0])
        return report

    def predict(self, X):
        """The number of each item, float64."""
        self._need_fitted()
        return _exact.chain(self._table(X, fitting=False).values, self.coef_, self.intercept_)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")


class Ridge(_Penalised):
    """Linear regression with a penalty on the squares of the coefficients.

    It minimises the sum of the squares of the errors plus `alpha` times the sum of the squares of
    the coefficients, as scikit-learn's class of this name. The sums over the items are exact, so the
    bytes depend on no order of the items, no number of threads and no processor. Values and targets
    are rounded to float32 first.

    Parameters
    ----------
    alpha : float
        Of the penalty, from 0.
    fit_intercept : bool
        Whether the model has an intercept, which has no penalty.
    threads : int, optional
        Cores of the CPU. They do not change the result.
    devices : str, optional
        Devices that may take part, as ``"cpu,cuda:0"``. They do not change the result.

    Attributes
    ----------
    coef_ : ndarray
        float64, a number for each feature.
    intercept_ : float
        0 without an intercept.
    model_ : Model
        The same for `Model.save` and other data.
    n_features_in_, feature_names_in_
        As for `Classifier`.

    Examples
    --------
    >>> from quern import Ridge
    >>> Ridge(alpha=0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_
    array([2.])
    """

    def __init__(self, alpha=1.0, *, fit_intercept=True, threads=None, devices=None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.threads = threads
        self.devices = devices

    def fit(self, X, y=None):
        """Fits the coefficients to items x features and a number for each item.

        A `Data` has its numbers itself; it may be `Parts`.

        Returns
        -------
        Ridge
            Itself.
        """
        self._fit("ridge", X, y)
        return self


class Lasso(_Penalised):
    """Linear regression with a penalty on the magnitudes of the coefficients, many of which become 0.

    It minimises the sum of the squares of the errors over twice the number of items, plus `alpha`
    times the sum of the magnitudes, by coordinate descent, as scikit-learn's class of this name. For
    the bytes see `Ridge`.

    Parameters
    ----------
    alpha : float
        Of the penalty, from 0.
    fit_intercept : bool
        Whether the model has an intercept, which has no penalty.
    max_iter : int
        Passes over the coefficients at most. ConvergenceWarning where they are too few.
    tol : float
        The passes end when the duality gap is at most this part of the sum of the squares of the
        targets' deviations from their mean.
    threads : int, optional
        Cores of the CPU. They do not change the result.
    devices : str, optional
        Devices that may take part, as ``"cpu,cuda:0"``. They do not change the result.

    Attributes
    ----------
    coef_, intercept_, model_, n_features_in_, feature_names_in_
        As for `Ridge`.
    n_iter_ : int
        Passes.
    dual_gap_ : float
        The duality gap, divided by the number of items.
    """

    def __init__(self, alpha=1.0, *, fit_intercept=True, max_iter=1000, tol=1e-4, threads=None,
                 devices=None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.threads = threads
        self.devices = devices

    def fit(self, X, y=None):
        """Fits the coefficients to items x features and a number for each item.

        A `Data` has its numbers itself; it may be `Parts`.

        Returns
        -------
        Lasso
            Itself.
        """
        result = self._fit("lasso", X, y, tolerance=float(self.tol), iterations=int(self.max_iter))
        self.n_iter_, self.dual_gap_ = int(result.iterations), float(result.gap)
        if not result.converged:
            warnings.warn(f"not converged after {result.iterations} passes: the duality gap is "
                          f"{result.gap:.3g}. Raise max_iter or tol", ConvergenceWarning, stacklevel=2)
        return self
