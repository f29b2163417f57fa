"""Linear models by scikit-learn's protocol. They work without scikit-learn too."""

import warnings

import numpy as np

from . import _exact, _weights
from .data import Data
from .estimator import SMALL, Classifier, _classes_of, _only, _weighted
from .errors import InputError

try:
    from sklearn.exceptions import ConvergenceWarning
except ImportError:
    class ConvergenceWarning(UserWarning):
        """The iterations ended before the gradient was small enough."""


class LogisticRegression(Classifier):
    """Logistic regression, with the same bytes on any number of threads and devices.

    It minimises what scikit-learn's class of this name does: the sum of the losses of the items
    times `C`, plus the penalty of the coefficients. The intercept has no penalty. With three classes
    or more the loss is that of the multinomial model. Values are float32 and are not scaled:
    standardise them first, as `sklearn.preprocessing.StandardScaler` does.

    Parameters
    ----------
    penalty : "l2", "l1" or None
        Half the sum of the squares of the coefficients, the sum of their magnitudes, or nothing.
    C : float
        The weight of the losses against the penalty, above 0.
    tol : float
        The iterations end when no component of the gradient of the mean loss is greater. float32
        allows about 1e-8 with standardised values.
    fit_intercept : bool
        Whether the model has an intercept; else it is 0.
    class_weight : "balanced" or dict, optional
        Weights of the classes, 1 for those that the dict does not name. "balanced": the number of
        items over the number of classes and the number of items of the class.
    max_iter : int
        Iterations at most. ConvergenceWarning where they are too few.
    threads : int, optional
        Cores of the CPU. They do not change the result.
    devices : str, optional
        Devices that may take part. They do not change the result.

    Attributes
    ----------
    coef_ : ndarray
        float64, one row of as many numbers as there are features; with three classes or more a row
        for each class.
    intercept_ : ndarray
        float64, one number for each row of `coef_`.
    n_iter_ : ndarray
        int32, one element: the number of iterations.
    classes_, n_features_in_, feature_names_in_, model_
        As for `Classifier`.

    Examples
    --------
    >>> from quern import LogisticRegression
    >>> LogisticRegression(C=10).fit([[0.0], [1.0], [0.1], [0.9]], ["a", "b", "a", "b"])
    ...     .predict([[0.2], [0.8]])
    array(['a', 'b'], dtype='<U1')
    """

    # What a Classifier has as parameters.
    model = batch = lr = loss = schedule = valid = arith = tokens = context = options = None
    scale, missing, seed = "none", "error", 1

    def __init__(self, penalty="l2", *, C=1.0, tol=1e-4, fit_intercept=True, class_weight=None, max_iter=100, threads=None,
                 devices=None):
        self.penalty = penalty
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.threads = threads
        self.devices = devices

    def fit(self, X, y=None, sample_weight=None):
        """Fits the coefficients to items with their classes.

        Parameters
        ----------
        X, y, sample_weight
            As for `Classifier.fit`.

        Returns
        -------
        LogisticRegression
            Itself.
        """
        if self.penalty not in ("l2", "l1", None, "none"):
            raise ValueError(f'penalty is "l2", "l1" or None, and not {self.penalty!r}')
        if not self.C > 0:
            raise ValueError(f"C is a number above 0, and not {self.C!r}")
        table = self._table(X, fitting=True)
        if isinstance(X, Data):
            return self._fit_made(_only(X, y, sample_weight))
        table, y, weights = _weighted(table, self._checked(y, len(table.values)), sample_weight)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise InputError("the classifier needs two classes or more, and this has 1 class", "y")
        labels = self._numbers(y)
        weights = self._with_classes(labels, weights)
        total = len(labels) if weights is None else weights.sum()
        self._train(table, labels, self._layers(), weights, **self._penalties(total))
        self._take()
        return self

    def _fit_made(self, data):
        if self.class_weight is not None or data.weights is not None:
            raise ValueError("weights and class_weight are for arrays, and not for a quern.Data")
        self.classes_ = _classes_of(data)
        self._train_on(data, self._layers(), **self._penalties(data.items))
        self._take()
        return self

    def _penalties(self, total):
        strength = 1 / (self.C * total) if self.penalty in ("l2", "l1") else 0.0
        return {"weight_decay": strength if self.penalty == "l2" else 0.0, "l1": strength if self.penalty == "l1" else 0.0}

    def decision_function(self, X):
        """The logarithm of the odds of the second class; with three classes or more a number for
        each class, whose softmax `predict_proba` is.

        Returns
        -------
        ndarray
            float64, items or items x classes.
        """
        self._need_fitted()
        values = self._table(X, fitting=False).values
        found = np.stack([_exact.chain(values, w, b) for w, b in zip(self.coef_, self.intercept_)], 1)
        return found[:, 0] if len(self.classes_) == 2 else found

    def predict_log_proba(self, X):
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def partial_fit(self):
        """There is none: the gradient is that of all items."""
        raise AttributeError("LogisticRegression has no partial_fit")

    def _with_classes(self, labels, weights):
        """The weights of items times those of their classes, or None."""
        _weights.of_classes(self.class_weight, self.classes_)  # raises ValueError for a wrong one
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str):
            counts = np.bincount(labels, weights, minlength=len(self.classes_))
            own = counts.sum() / (len(counts) * counts)
        else:
            own = np.array([float(self.class_weight.get(c, 1)) for c in self.classes_.tolist()])
        return own[labels] if weights is None else own[labels] * weights

    def _layers(self):
        classes = len(self.classes_)
        return "dense 1 sigmoid" if classes == 2 else f"dense {classes} softmax"

    def _options(self, items, features, model):
        threads, devices = self.threads, self.devices
        if threads is None and devices is None and items * features <= SMALL:
            threads, devices = 1, "cpu"
        return {"model": model, "optimizer": "lbfgs", "scale": "none", "tolerance": self.tol,
                "no_intercept": None if self.fit_intercept else 1,
                "epochs": self.max_iter, "threads": threads, "devices": devices,
                "loss": "binary" if len(self.classes_) == 2 else "cross-entropy"}

    def _take(self):
        """The attributes that the model gives."""
        self.coef_ = self.model_.tensor("layer0.weight").astype(np.float64)
        self.intercept_ = self.model_.tensor("layer0.bias").astype(np.float64)
        report = self.model_.report
        self.n_iter_ = np.array([max(1, report.iterations)], np.int32)
        if not report.converged:
            warnings.warn(f"not converged after {report.iterations} iterations: the largest component "
                          f"of the gradient is {report.largest_slope:.3g}. Scale the values, or "
                          "raise max_iter or tol", ConvergenceWarning, stacklevel=3)
