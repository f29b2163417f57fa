"""Estimators by scikit-learn's protocol. They work without scikit-learn too."""

import numpy as np

from . import _arrays, _arrow, _weights
from .data import Data
from .errors import InputError
from .training import train

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import DataConversionWarning, NotFittedError
except ImportError:
    class BaseEstimator:
        """The part of scikit-learn's protocol that needs nothing of it."""

        def get_params(self, deep=True):
            from inspect import signature

            return {name: getattr(self, name) for name in signature(type(self)).parameters}

        def set_params(self, **values):
            for name, value in values.items():
                if name not in self.get_params():
                    raise ValueError(f"{type(self).__name__} has no parameter {name!r}")
                setattr(self, name, value)
            return self

    class ClassifierMixin:
        """The share of items whose class is found, as the score."""

        def score(self, X, y, sample_weight=None):
            right = self.predict(X) == np.asarray(y)
            return float(np.average(right, weights=sample_weight))

    class RegressorMixin:
        """The coefficient of determination as the score."""

        def score(self, X, y, sample_weight=None):
            y = np.asarray(y, np.float64)
            mean = np.average(y, weights=sample_weight)
            rest = np.average((y - self.predict(X)) ** 2, weights=sample_weight)
            return float(1 - rest / np.average((y - mean) ** 2, weights=sample_weight))

    class NotFittedError(ValueError, AttributeError):
        """`predict` was called before `fit`."""

    class DataConversionWarning(UserWarning):
        """The labels were converted."""


# Values of a table for which one thread of the CPU is enough.
SMALL = 10000


class _Made:
    """A data set that the caller has made, where a table is expected; maybe in parts."""

    def __init__(self, data):
        self.data, self.names = data, data.names

    @property
    def values(self):
        return self.data.values

    @property
    def categories(self):
        return self.data.categories

    @property
    def own(self):
        """The rows of this rank; all of them where the data set is not in parts."""
        return getattr(self.data, "own", self.data)


def _only(X, y, sample_weight=None):
    """The data set X has labels and weights itself."""
    if y is not None or sample_weight is not None:
        raise ValueError("a quern.Data has its labels and weights: leave y and sample_weight out")
    return X


class _Tabular(BaseEstimator):
    """What all estimators have in common: tables of numbers, checked as scikit-learn asks for."""

    missing = "error"
    text_features = None

    def _need_fitted(self):
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit")

    def _table(self, X, fitting):
        """The table with values as float32, checked as scikit-learn asks for."""
        if isinstance(X, Data):
            self._match(X.features, X.names, fitting)
            return _Made(X)
        plain = type(X) is np.ndarray  # by far the most frequent
        names = None if plain else _arrow.column_names(X)
        stream = None if plain else _arrow.stream_of(X)
        if stream is None:
            values, more = _array(X), {}
            if values.dtype.kind in "MmO":
                stream = _arrow.objects(values)
        if stream is not None:
            read = Data._of(stream.read(unlabelled=1))
            values, more = read.values, self._kinds(read)
            if fitting:  # later the model knows them
                more["text_features"] = self.text_features
            names = names and read.names  # without the index of pandas
        self._match(values.shape[1], names, fitting)
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(values, np.float32)
        self._must_be_numbers(values)
        return _arrays.Table(values, names, **{"categories": None, **more})

    def _kinds(self, read):
        """What the columns of the table are, beside numbers: members of `Table`."""
        return {"categories": read.categories, "rules": read._rules}

    def _must_be_numbers(self, values):
        with np.errstate(all="ignore"):
            if np.isfinite(values.sum()):  # which needs no second table, as the rest does
                return
        known = np.isfinite(values)
        if not known.all() and not (known | (np.isnan(values) & (self.missing != "error"))).all():
            kind = "NaN" if np.isnan(values).any() else "infinity"
            raise InputError(f"Input X contains {kind}, or values beyond float32", "X",
                             "leave out or replace these values, or set missing")

    def _match(self, features, names, fitting):
        """Remembers the features of `fit`, or compares with them."""
        if fitting:
            vars(self).pop("model_", None)  # if this fit fails, it would not belong to the new classes
            self.n_features_in_ = features
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return
        known = getattr(self, "feature_names_in_", None)
        _compare_names(type(self).__name__, known, names)
        if features != self.n_features_in_:
            raise ValueError(f"X has {features} features, but {type(self).__name__} is expecting "
                             f"{self.n_features_in_} features as input")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        tags.input_tags.sparse = True
        return tags


class _Network(_Tabular):
    """What the networks have in common."""

    def __init__(self, model=None, *, epochs=None, batch=None, lr=None, optimizer=None, loss=None,
                 scale="standard", schedule=None, weight_decay=None, valid=None, arith=None, seed=1,
                 missing="error", text_features=None, options=None, threads=None, devices=None):
        self.model = model
        self.epochs = epochs
        self.batch = batch
        self.lr = lr
        self.optimizer = optimizer
        self.loss = loss
        self.scale = scale
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.valid = valid
        self.arith = arith
        self.seed = seed
        self.missing = missing
        self.text_features = text_features
        self.options = options
        self.threads = threads
        self.devices = devices

    def _train(self, table, labels, model, weights, **more):
        """Trains on items of weights above 0. `more` replaces options."""
        return self._train_on(_data(table, labels, weights), model, **more)

    def _train_on(self, data, model, **more):
        options = {**self._options(data.items, data.features, model), **more}
        made = train(data, progress=False,
                     **{word: value for word, value in options.items() if value is not None})
        self._check(made)
        self.model_ = made
        return self

    def _fit_part(self, values, labels, weights, options, how):
        """The model of all ranks' items, of which this rank has these; None: it has none. An engine has
        set what the whole decides, such as `classes_`. `how` are options of `quern.Parts`."""
        from .parts import Parts

        data = None
        if values is not None:
            table = self._table(values, fitting=True)
            table, labels, weights = _weighted(table, self._checked(labels, len(table.values)), weights)
            data = Data.__new__(Data)
            data._lend(table, self._numbers(labels), weights=weights)
        return self._train_on(Parts(data, **how), self._layers(), **self._of_classes(), **options).model_

    def _of_classes(self):
        """Options that depend on the classes."""
        return {}

    def _kinds(self, read):
        """A network gets the parts of dates; the other estimators get the days."""
        kinds = read._dates_to_lend()
        exact = {k: read._exact(k) for k, of in enumerate(kinds) if of and of[1] != "date"}
        return {**super()._kinds(read), "dates": kinds, "exact": exact}

    def _check(self, made):
        """Raises InputError for a model whose outputs do not fit the labels."""

    def data(self, X, y, sample_weight=None):
        """The data set that `fit` trains on, for ``quern.replay(estimator.model_, data)``.

        Parameters
        ----------
        X, y, sample_weight
            As `fit` had them.

        Returns
        -------
        Data
        """
        self._need_fitted()
        table = self._table(X, fitting=False)
        table, y, weights = _weighted(table, self._checked(y, len(table.values)), sample_weight)
        return _data(table, self._numbers(y), weights)

    def _go_on(self, table, labels, model, weights, class_weight=None):
        """Trains one epoch more, with the scaling of the first call."""
        more = {"epochs": 1, "valid": None, "class_weight": class_weight}
        if self.__sklearn_is_fitted__():
            more.update(init_from=self.model_, init_scale="keep", scale=None, missing=None)
        return self._train(table, labels, model, weights, **more)

    def _options(self, items, features, model):
        """The options for so many items."""
        threads, devices = self.threads, self.devices
        if threads is None and devices is None and items * features <= SMALL:
            threads, devices = 1, "cpu"  # starting more takes longer than they would save
        given = {"model": model, "batch": self.batch, "lr": self.lr, "epochs": self.epochs,
                 "optimizer": self.optimizer, "loss": self.loss, "scale": self.scale,
                 "schedule": self.schedule, "weight_decay": self.weight_decay,
                 "valid": self.valid, "arith": self.arith, "seed": self.seed,
                 "missing": self.missing, "threads": threads, "devices": devices}
        return {**given, **(self.options or {})}

    def _outputs(self, X, outputs):
        self._need_fitted()
        data = _data(self._table(X, fitting=False))
        threads, devices = self.threads, self.devices
        if threads is None and devices is None and data.items * data.features <= SMALL:
            threads, devices = 1, "cpu"
        return self.model_.predict(data, outputs=outputs, threads=threads, devices=devices)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "model_")


class Classifier(ClassifierMixin, _Network):
    """A network that tells classes apart.

    The parameters are the options of `quern.train`; None takes what is said here.

    Parameters
    ----------
    model : str or os.PathLike, optional
        The layers, or the path of a file of them. "{classes}" stands for the number of classes.
        Default: "dense 64 relu; dense 32 relu; dense {classes} softmax".
    epochs : int, optional
        Passes over the items. Default: as many as give 1000 steps, between 10 and 200.
    batch : int, optional
        Items of a step. Default: 8 to 256, by the number of items.
    lr : float, optional
        Learning rate. Default: 0.01 where no optimizer is named, with attention 0.001, otherwise that
        of the optimizer.
    optimizer : str, optional
        "sgd", "momentum", "adam", "adamw". Default: "adamw", with the schedule "cosine" and a weight
        decay of 1, of 1000 items or more 0.3, of 10000 or more 0.1.
    loss : str, optional
        "cross-entropy" or "mse".
    scale : str
        How features are scaled: "standard", "minmax", "robust", "none", "unit", "fraction", and
        for images "channel".
    schedule : str, optional
        "constant", "step", "cosine", "exponential". Default: that of the optimizer.
    weight_decay : float, optional
        Weight decay of the weights. Default: that of the optimizer.
    valid : float, optional
        Fraction of the items to set aside; their scores stand in ``model_.history``.
    arith : str, optional
        "f32", "i7", "i14", "i21".
    missing : str
        What becomes of a NaN: "error", "mean", "median", "zero".
    text_features : str or list of str, optional
        What the network gets of columns of texts, as in `quern.Data`. Default: words and pairs of words.
    seed : int
        Of all that is random. The same seed gives the same bytes.
    class_weight : "balanced" or dict, optional
        Weights of the classes, 1 for those that the dict does not name. "balanced" gives all
        classes the same sum of weights.
    tokens : str, optional
        `X` is texts, and these are the tokens of the network: "bytes", "chars", "words",
        "words:8000", "bpe:8000" or a file, as in `quern.Data`. The model begins with "embedding",
        or is a ready one: "text-cnn", "bert-mini", "bag".
    context : int, optional
        With tokens: how many of them an item has; shorter texts are filled up, longer ones cut.
    options : dict, optional
        Further options of `quern.train`, such as ``{"momentum": 0.8}``.
    threads : int, optional
        Cores of the CPU. They do not change the result.
    devices : str, optional
        Devices that may take part. They do not change the result.

    Attributes
    ----------
    classes_ : ndarray
        The classes, ascending.
    n_features_in_ : int
        Number of features in `fit`.
    feature_names_in_ : ndarray
        Their names, where all columns had one.
    model_ : Model
        The trained network. Its class ``k`` is ``classes_[k]``.

    Notes
    -----
    An item of weight 2 counts as two items do, and one of weight 0 as none. In tables of up to 1000
    items, counted with their weights, whole weights repeat items, and where items are equal all are
    put in order by their values. So `fit` gives the same bytes for a weight of 2 as for an item that
    is there twice, wherever it stands. Other weights go to the library, which divides them by their
    mean; results then agree up to rounding and the division into batches.

    Examples
    --------
    >>> from quern import Classifier
    >>> Classifier(epochs=20).fit([[0.0], [1.0], [0.1], [0.9]], ["a", "b", "a", "b"])
    ...     .predict([[0.2], [0.8]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, model=None, *, epochs=None, batch=None, lr=None, optimizer=None, loss=None,
                 scale="standard", schedule=None, weight_decay=None, valid=None, arith=None, seed=1,
                 missing="error", text_features=None, class_weight=None, tokens=None, context=None,
                 options=None, threads=None, devices=None):
        super().__init__(model, epochs=epochs, batch=batch, lr=lr, optimizer=optimizer, loss=loss,
                         scale=scale, schedule=schedule, weight_decay=weight_decay, valid=valid,
                         arith=arith, seed=seed, missing=missing, text_features=text_features, options=options,
                         threads=threads, devices=devices)
        self.class_weight = class_weight
        self.tokens = tokens
        self.context = context

    def fit(self, X, y=None, sample_weight=None):
        """Trains on items with their classes.

        Parameters
        ----------
        X : array_like, DataFrame, Arrow table, sparse matrix or Data
            Items x features. A `Data` has its classes itself; it may be `Parts`.
            Columns of texts and categories in a DataFrame or an Arrow table become one input for each category;
            a category that `fit` did not see is none of them.
            Of dates the network gets the year, the month, the weekday, the days and perhaps the hour.
            With `tokens`: a list, an array or a column of texts.
        y : array_like
            The class of each item, numbers or texts.
        sample_weight : array_like, optional
            The weight of each item, from 0. See the notes.

        Returns
        -------
        Classifier
            Itself.
        """
        if isinstance(X, Data):
            return self._fit_made(_only(X, y, sample_weight))
        if self.tokens is not None:
            return self._fit_texts(X, y, sample_weight)
        table = self._table(X, fitting=True)
        table, y, weights = _weighted(table, self._checked(y, len(table.values)), sample_weight)
        self._find_classes(y)
        return self._train(table, self._numbers(y), self._layers(), weights, **self._of_classes())

    def _fit_made(self, data):
        self._table(data, fitting=True)
        self.classes_ = _classes_of(data)
        return self._train_on(data, self._layers(), **self._of_classes())

    def _of_classes(self):
        return {"class_weight": _weights.of_classes(self.class_weight, self.classes_)}

    def _find_classes(self, y):
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise InputError("the classifier needs two classes or more, and this has 1 class", "y")

    def _fit_texts(self, X, y, sample_weight):
        texts = _texts(X)
        self._match(1, None, True)
        self._find_classes(self._checked(y, len(texts)))
        return self._train_on(self._text_data(texts, y, sample_weight), self._layers(), missing=None,
                              scale=None if self.scale == "standard" else self.scale, **self._of_classes())

    def _text_data(self, texts, y, sample_weight):
        """Items of weight 0 are left out."""
        y, weights = self._checked(y, len(texts)), _weights.of_items(sample_weight, len(texts))
        if weights is not None:
            there = np.asarray(weights) > 0
            texts, y, weights = texts[there], y[there], np.asarray(weights)[there]
        return Data(texts, self._numbers(y), weights=weights, tokens=self.tokens, context=self.context)

    def data(self, X, y, sample_weight=None):
        if self.tokens is None:
            return super().data(X, y, sample_weight)
        self._need_fitted()
        return self._text_data(_texts(X), y, sample_weight)

    data.__doc__ = _Network.data.__doc__

    def _outputs(self, X, outputs):
        if self.tokens is None:
            return super()._outputs(X, outputs)
        self._need_fitted()
        return self.model_.predict(_texts(X), outputs=outputs, threads=self.threads, devices=self.devices)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Trains one epoch more on these items.

        The first call after the constructor also fits the scaling of features, the numbers for
        missing values and the categories, and later calls keep them. What the optimiser has
        gathered (momentum, and the moments of adam) is in no model, so it starts anew in each call;
        the learning rate is that of the first epoch.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array_like
            All classes that will ever occur. Needed in the first call.

        Returns
        -------
        Classifier
            Itself.
        """
        if self.tokens is not None:
            raise ValueError("partial_fit takes numbers; a tokenizer learns from all texts: use fit")
        first = not self.__sklearn_is_fitted__()
        table = self._table(X, fitting=first)
        y = self._checked(y, len(table.values))
        if first and classes is None:
            raise ValueError("classes must be passed in the first call of partial_fit")
        if first:
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"the classes {np.unique(classes)} are not those of the first call, "
                             f"{self.classes_}")
        if isinstance(self.class_weight, str):
            raise ValueError('class_weight="balanced" needs all items at once; give partial_fit a '
                             "dict of weights")
        table, y, weights = _weighted(table, y, sample_weight)
        return self._go_on(table, self._numbers(y), self._layers(), weights,
                           _weights.of_classes(self.class_weight, self.classes_))

    def _checked(self, y, items):
        """The classes of the items as a vector."""
        y = _vector(y, items)
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            raise ValueError("Unknown label type: continuous. A classifier needs classes")
        return y

    def _numbers(self, y):
        try:
            found = np.searchsorted(self.classes_, y)
            strange = (self.classes_.take(found, mode="clip") != y).any()
        except TypeError:  # texts among numbers
            strange = True
        if strange:
            raise ValueError(f"y has classes that are not among {self.classes_}")
        return found.astype(np.int32)

    def _layers(self):
        model = self.model
        if not isinstance(model, str):  # the path of a file, or None
            return model
        return model.replace("{classes}", str(len(self.classes_)))

    def _check(self, made):
        outputs, classes = made.outputs, len(self.classes_)
        if outputs != classes and (outputs, classes) != (1, 2):
            raise InputError(f"the network has {outputs} outputs, and there are {classes} classes", "y",
                             'write "{classes}" in the model instead of the number')

    def predict(self, X):
        """The class of each item.

        Returns
        -------
        ndarray
            Elements of ``classes_``.
        """
        found = self._outputs(X, False)
        if not len(found):  # a rank may have no rows
            return self.classes_[:0]
        if found.dtype.kind not in "iu":  # a `Data` has named the classes of the model
            return found
        if (found < 0).any():
            raise InputError(f"{(found < 0).sum()} items lack a value, and the classifier was "
                             "trained without such items", "X", "fit with missing=\"median\"")
        return self.classes_[found]

    def predict_proba(self, X):
        """The outputs of the network, one for each class.

        They are probabilities where the last layer is softmax.

        Returns
        -------
        ndarray
            float32, items x classes.
        """
        outputs = self._outputs(X, True)
        if outputs.shape[1] == 1 and len(self.classes_) == 2:  # one sigmoid: that of the second class
            outputs = np.hstack([1 - outputs, outputs])
        return outputs


def _classes_of(data):
    """The classes of a data set: texts, or the numbers from 0."""
    if data.classes < 2:
        raise InputError("the classifier needs two classes or more, and the data set has real labels or none", "X",
                         'name its labels with label=, and task="classify" where they are numbers')
    names = data.class_names
    return np.arange(data.classes) if names is None else np.array(names)


class Regressor(RegressorMixin, _Network):
    """A network that predicts a number.

    The parameters are those of `Classifier` without `class_weight`, except the defaults of two.
    `model`: "dense 64 relu; dense 32 relu; dense 1 none". `loss`: "mse"; "mae" and "huber" are the
    others. Labels are float32 and scaled by the library, so that predictions are in their units.

    Attributes
    ----------
    n_features_in_, feature_names_in_, model_
        As for `Classifier`.
    """

    def fit(self, X, y=None, sample_weight=None):
        """Trains on items with their numbers.

        Parameters
        ----------
        X, sample_weight
            As for `Classifier.fit`.
        y : array_like
            The number of each item.

        Returns
        -------
        Regressor
            Itself.
        """
        table = self._table(X, fitting=True)
        if isinstance(X, Data):
            return self._train_on(_only(X, y, sample_weight), self._layers())
        table, y, weights = _weighted(table, self._checked(y, len(table.values)), sample_weight)
        return self._train(table, self._numbers(y), self._layers(), weights)

    def partial_fit(self, X, y, sample_weight=None):
        """Trains one epoch more on these items, as `Classifier.partial_fit`.

        The first call also fits the scaling of the targets.
        """
        table = self._table(X, fitting=not self.__sklearn_is_fitted__())
        table, y, weights = _weighted(table, self._checked(y, len(table.values)), sample_weight)
        return self._go_on(table, self._numbers(y), self._layers(), weights)

    def _checked(self, y, items):
        return _vector(y, items)

    def _numbers(self, y):
        with np.errstate(over="ignore"):
            return y.astype(np.float32)

    def _layers(self):
        return self.model

    def predict(self, X):
        """The number of each item, float32."""
        return self._outputs(X, False)


def _data(table, labels=None, weights=None):
    """The data set of a table with the numbers of classes or with targets."""
    if isinstance(table, _Made):
        return table.data
    if labels is not None:
        table, labels, weights = _weights.settled(table, labels, weights)
    data = Data.__new__(Data)
    data._lend(table, labels, weights=weights)
    return data


def _weighted(table, y, sample_weight):
    """Table, labels and weights of the items whose weight is above 0."""
    return _weights.present(table, y, _weights.of_items(sample_weight, len(y)))


def _array(X):
    """The values of an array or a sparse matrix."""
    if hasattr(X, "tocsr"):
        values = X
    else:
        values = _arrays.array_of(X)
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    _must_not_be_texts(values)
    if values.ndim != 2:
        raise ValueError(f"Expected 2D array, got {values.ndim}D array instead. Reshape your data "
                         "with .reshape(-1, 1) for one feature, .reshape(1, -1) for one item")
    if values.shape[0] == 0 or values.shape[1] == 0:
        raise ValueError(f"Found array with {values.shape[0]} sample(s) and {values.shape[1]} "
                         f"feature(s) (shape={values.shape}) while a minimum of 1 is required.")
    if values is X and hasattr(X, "tocsr"):
        return _arrays.dense(X)
    as_it_is = values.dtype.kind in "biufMm" or values.dtype == object and _arrow.hold_times(values)
    return values if as_it_is else values.astype(np.float64)


def _must_not_be_texts(values):
    """An array has no columns of texts, whose words or tokens a network could get."""
    if values.dtype.kind not in "OUS" or not values.size:
        return
    first = values.flat[0]
    try:
        if isinstance(first, (str, bytes)):
            float(first)
    except ValueError:
        raise InputError(f"the array holds texts, such as {first[:40]!r}", "X",
                         "give a DataFrame, whose columns may hold texts; for tokens use "
                         "Classifier(\"text-cnn\", tokens=\"words:8000\", context=128)") from None


def _texts(X):
    """One text for each item, of a list, an array or a column."""
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or values.dtype.kind not in "OUS" or not len(values):
        raise InputError(f"tokens are those of texts, and X is an array of {values.dtype} with the shape "
                         f"{values.shape}", "X", "give a list or a column of texts, or leave tokens out")
    return values


def _compare_names(estimator, known, names):
    import warnings

    if known is None and names is not None:
        warnings.warn(f"X has feature names, but {estimator} was fitted without feature names")
    elif known is not None and names is None:
        warnings.warn(f"X does not have valid feature names, but {estimator} was fitted with "
                      "feature names")
    elif known is not None and list(known) != list(names):
        raise ValueError(_difference(list(known), list(names)))


def _difference(known, names):
    """scikit-learn's words for features that do not fit."""
    lines = ["The feature names should match those that were passed during fit."]
    unseen = sorted(set(names) - set(known))
    missing = sorted(set(known) - set(names))
    for title, some in (("unseen at fit time", unseen), ("seen at fit time, yet now missing",
                                                         missing)):
        if some:
            lines.append(f"Feature names {title}:")
            lines += [f"- {name}" for name in some[:5]] + (["- ..."] if len(some) > 5 else [])
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _vector(y, items):
    """The labels as a vector without missing ones."""
    import warnings

    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = _arrays.array_of(y, "y")
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the "
                      "shape of y to (n_samples,), for example using ravel().",
                      DataConversionWarning, stacklevel=3)
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if len(y) != items:
        raise ValueError(f"X has {items} items and y has {len(y)}")
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("Input y contains NaN or infinity", "y")
    if y.dtype.kind in "OMm" and any(map(_arrow.is_missing, y)):
        raise InputError("Input y contains NaN or None", "y", "leave these items out")
    return y
