"""Data sets: tables of items from arrays or files."""

import ctypes as C
import numbers
import os

from . import _abi, _several, ranks
from ._library import assign, call, library, new, owned, said, sized, text
from ._paths import is_paths, paths_of
from .errors import InputError, UsageError, spelled

_DATE_KINDS = (None, "date", "time", "UTC time")  # the members of qn_date_kind


class Data:
    """A data set: a table of items x features, with or without labels. It never changes.

    Parameters
    ----------
    values : array_like, DataFrame, Arrow table or sparse matrix
        Items x features. Arrays of NumPy and DLPack (torch, JAX) in float32 or uint8 and C order are
        used where they are, without a copy, and must not change while the data set is in use; so
        are DataFrames whose values lie like that. Whole numbers from 0 to 255 are stored as bytes,
        others as float32. Tables of pandas, polars, pyarrow, DuckDB and whatever exports an Arrow
        stream are read column by column: columns of texts are categories, and nulls, NaN and None
        are missing values. Sparse matrices of SciPy become dense float32.
    labels : array_like, optional
        A class for each item, number or text; a real number; or items x labels, or masks of pixels.
    label : str or int, optional
        The label column of a table with named columns, instead of `labels`: a name, a number from
        1, or "last".
    features, drop : str or list of str, optional
        The columns of such a table to read beside the label, or to leave out: "age,3-7".
    category : str, optional
        Columns of such a table that hold categories although they are numbers.
    text : str or list of str, optional
        Columns of such a table whose words a network gets, such as reviews; "none": no column.
    text_features : str or list of str, optional
        What it gets of them: "words:1..2", "chars:3..5" (within words), "chars-across:3..5" or several.
    dates : str or list of str, optional
        What a network gets of dates in such a table or an array: "year,month,weekday".
    weights : array_like, optional
        The weight of each item, from 0; by default all count equally.
    weight : str or int, optional
        The column of weights of a table, named as `label` is.
    names : list of str, optional
        Names of the features. By default those of the table's columns.
    label_name : str, optional
        Name of the labels. By default that of a Series.
    classes : list of str, optional
        Names of the classes; `labels` are then indices into it.
    task : str, optional
        "classify" or "regress". By default texts and whole numbers are classes, other numbers real
        labels.
    tokens : str, optional
        "ids": the whole numbers of an array are tokens, kept as uint16 or uint32 and never scaled. A
        tokenizer, as `Tokenizer` takes it: an item has the tokens of its text, in the one column of texts
        of a table, or an array or a Series of texts.
    context : int, optional
        Of one row of tokens: an item has so many and the next one, with which the next item begins. Of
        texts: the tokens of an item; shorter texts are filled up, longer ones are cut.

    Raises
    ------
    InputError
        Values that are infinite; labels that do not fit; memory of another device than the CPU.
    OutOfMemory
        A sparse matrix that is too large as a dense one.
    """

    _image = None  # of an array: (channels, rows, columns)
    _is_own = False  # of one rank alone: others have other rows

    def __init__(self, values, labels=None, *, label=None, features=None, drop=None, category=None,
                 weights=None, weight=None, names=None, label_name=None, classes=None, task=None,
                 dates=None, tokens=None, context=None, text=None, text_features=None):
        columns = {"label_column": label, "features": features, "drop": drop, "category": category,
                   "weight": weight, "dates": dates, "tokens": tokens, "context": context,
                   "text": text, "text_features": text_features}
        self._make(values, labels, columns, weights, names=names, label_name=label_name,
                   classes=classes, task=task)

    def _make(self, values, labels, columns, weights=None, names=None, label_name=None, classes=None,
              task=None, expected=(), rules=None):
        """`columns` are members of qn_data_options; `expected` are such members of other data, and
        `rules` the rules by which that was read."""
        from . import _arrays, _arrow

        values = streamed(values)
        columns = {word: value for word, value in columns.items() if value is not None}
        for word, column in dict(expected).items():
            if _several.has_columns(values, column) and (word != "label_column" or labels is None):
                columns.setdefault(word, column)
        for word in ("label_column", "weight"):
            if word in columns:
                columns[word] = _several.column_text(values, columns[word], _abi.OPTIONS[f"data.{word}"])
        if _arrays.tokenises(columns):
            values, labels, weights, columns = _arrow.with_labels(values, labels, weights, columns)
        stream = _arrow.stream_of(values, chosen=bool(columns))
        label = columns.get("label_column")
        columns = _arrays.as_trained(values, columns, stream is not None)
        if stream is not None and columns.get("tokens") == "ids":
            raise TypeError("tokens: ids are those of files and arrays")
        if stream is None and set(columns) - {"dates", "tokens", "context"}:
            words = ", ".join(_abi.OPTIONS[f"data.{word}"] for word in columns)
            raise TypeError(f"{words}: only for files and tables with named columns")
        for word, column, array in (("label", label, labels), ("weight", columns.get("weight"), weights)):
            if column is not None and array is not None:
                raise UsageError(f"{word}s and a column of {word}s were both given")
        if label is not None and weights is None:
            self._take(stream.read(task=task, expected_rules=rules,
                                   expected_label=dict(expected).get("label_column"), **columns))
            return
        if stream is not None and labels is None and weights is None and names is None:
            self._take(stream.read(unlabelled=1, expected_rules=rules, **columns))
            return
        if label is not None:
            raise UsageError("weights in an array need labels in an array, too", "",
                             "name the column of weights with weight")
        self._image = _arrays.image_of(values)
        table, own = _table(values, stream, {"expected_rules": rules, **columns})
        table = table._replace(expected=rules)
        weights = own if weights is None else weights
        if names is not None:
            table = table._replace(names=list(names))
        if label_name is None:
            given = getattr(labels, "name", None)
            label_name = given if isinstance(given, str) else None
        self._describe(table, labels, weights, label_name, classes, task)

    def _describe(self, table, labels, weights, label_name, classes, task):
        """Makes the data set of a table, and of labels and weights as a user gives them."""
        from . import _arrays

        if table.names is not None and len(table.names) != table.values.shape[1]:
            raise InputError(f"there are {len(table.names)} names for {table.values.shape[1]} features",
                             "names")
        if labels is not None:
            labels, classes, task = _arrays.any_labels_of(labels, classes, len(table.values), task)
        if weights is not None:
            weights = _arrays.weights_of(weights, len(table.values))
        self._lend(table, labels, label_name, classes, None if classes else task, weights)
        return self

    def _lend(self, table, labels=None, label_name=None, classes=None, task=None, weights=None):
        import numpy as np

        from . import _arrays

        values = table.values
        arrays = _abi.qn_data_arrays()
        library().qn_data_arrays_init(arrays)
        arrays.type = _arrays.TYPES.get(values.dtype.name, _abi.QN_F32)
        arrays.items, arrays.features = values.shape
        arrays.values, arrays.missing = values.ctypes.data, 1
        arrays.rules, arrays.expected_rules = text(table.rules), text(table.expected)
        for word, kind in ("whole", np.int64), ("real", np.float64):
            setattr(arrays, word, _columns(table, kind))
        if any(table.dates or ()):
            arrays.dates = _texts([of[0] if of else None for of in table.dates])
            kinds = bytes(_DATE_KINDS.index(of and of[1]) for of in table.dates)
            arrays.date_kinds = C.cast(C.c_char_p(kinds), C.POINTER(C.c_uint8))
            arrays.date_format = text(table.date_format)
        shared = values.strides[0] < values.shape[1] * values.itemsize  # items of a corpus
        copied = values.dtype == np.float64 or not values.flags.c_contiguous
        if copied or shared:
            size = values.dtype.itemsize
            arrays.doubles = int(size == 8)
            arrays.item_step, arrays.feature_step = (step // size for step in values.strides)
        if labels is not None and labels.ndim > 1:
            _several.lend(arrays, labels)
        elif labels is not None:
            labels = np.ascontiguousarray(labels)
            real = labels.dtype == np.float32
            labels = labels if real else labels.astype(np.int32)
            setattr(arrays, "targets" if real else "labels", C.cast(
                labels.ctypes.data, C.POINTER(C.c_float if real else C.c_int32)))
            arrays.task = None if real else text(task)
            arrays.label_name = text(label_name)
        if weights is not None:
            with np.errstate(over="ignore"):
                weights = np.ascontiguousarray(weights, np.float32)
            arrays.weights = C.cast(weights.ctypes.data, C.POINTER(C.c_float))
        arrays.feature_name = _texts(table.names)
        if table.bytes is not None and values.dtype != np.uint8:
            arrays.feature_bytes = (C.c_uint8 * len(table.bytes))(*table.bytes)
        if classes is not None:
            arrays.class_name, arrays.classes = _texts(classes), len(classes)
        if table.categories is not None:
            counts = [len(texts or ()) for texts in table.categories]
            arrays.categories = (C.c_uint32 * len(counts))(*counts)
            arrays.category = (C.POINTER(C.c_char_p) * len(counts))(
                *(C.cast(_texts(texts), C.POINTER(C.c_char_p)) if texts else None
                  for texts in table.categories))
        if table.texts is not None:
            arrays.texts = (C.c_uint8 * len(table.texts))(*table.texts)
        assign(arrays, "text_features", table.text_features)
        self._lent = values  # its memory outlives what the library makes of it
        self._take(new("qn_data_lend", arrays))
        if copied and not shared:
            self._lent = None

    @classmethod
    def from_batches(cls, batches, *, names=None, label_name=None, classes=None, task=None):
        """Reads batches of items one after the other, for data that never exists as one array.

        Parameters
        ----------
        batches : iterable
            Tables of numbers; or pairs of a table and its labels; or such a pair and the weights of
            its items. Values are stored as bytes where the first batch is an array of uint8 or
            bool, else as float32.
        names, label_name, classes, task
            As for `Data`. The names of the features are by default those of the first batch.

        Returns
        -------
        Data

        Raises
        ------
        InputError
            Batches that do not fit each other. An exception of the iterator comes through as it is.
        """
        from . import _arrays
        from ._batches import Batches

        given = Batches(batches)
        made = cls._of(given.read())
        names = given.names if names is None else list(names)
        labels, weights = given.all_of("labels"), given.all_of("weights")
        if labels is None and weights is None and names is None:
            return made
        table = _arrays.Table(made.values, names, None)
        return cls.__new__(cls)._describe(table, labels, weights, label_name, classes, task)

    def _take(self, address):
        self._address = address
        self._release = owned(self, "qn_data_close", address)
        return self

    @classmethod
    def _of(cls, address):
        return cls.__new__(cls)._take(address)

    @property
    def items(self):
        """Number of items."""
        return library().qn_data_items(self._address)

    @property
    def features(self):
        """Number of features of an item."""
        return library().qn_data_features(self._address)

    @property
    def values(self):
        """The values, items x features, uint8, float32, or tokens in uint16 or uint32: a view that cannot
        be written."""
        kind = (None, "|u1", "=f4", "=u2", "=u4")[library().qn_data_type_of(self._address)]
        context = library().qn_data_context(self._address)
        return _view(self, library().qn_data_values(self._address), (self.items, self.features), kind,
                     context and (context * int(kind[2]), int(kind[2])))

    @property
    def labels(self):
        """One class number for each item, int32, or None."""
        address = C.cast(library().qn_data_labels(self._address), C.c_void_p).value
        return _view(self, address, (self.items,), "=i4") if address else None

    @property
    def targets(self):
        """One real label for each item, float32, or None."""
        address = C.cast(library().qn_data_targets(self._address), C.c_void_p).value
        return _view(self, address, (self.items,), "=f4") if address else None

    @property
    def several(self):
        """Several targets for each item, uint8: labels, items x labels, or classes of pixels, items x
        rows x columns. 255: it does not count. None where an item has one label."""
        return _several.targets(self, _view)

    @property
    def weights(self):
        """One weight for each item, float32, or None."""
        address = C.cast(library().qn_data_weights(self._address), C.c_void_p).value
        return _view(self, address, (self.items,), "=f4") if address else None

    @property
    def weight_name(self):
        """Name of the column of weights, or None."""
        return said(library().qn_data_weight_name(self._address))

    @property
    def classes(self):
        """The largest label plus 1; 0 without labels, and for real labels."""
        return library().qn_data_classes(self._address)

    @property
    def class_names(self):
        """Names of the classes, or of several labels; None where they are numbers."""
        count = self.classes or _several.labels(self)
        names = [said(library().qn_data_class_name(self._address, k)) for k in range(count)]
        return names if any(name is not None for name in names) else None

    @property
    def label_name(self):
        """Name of the labels, or None."""
        return said(library().qn_data_label_name(self._address))

    def _exact(self, k):
        """A copy of the exact values of a feature that float32 does not hold, or None."""
        import numpy as np

        for get, kind in ((library().qn_data_whole, C.c_int64), (library().qn_data_real, C.c_double),
                          (library().qn_data_moments, C.c_int64)):
            address = get(self._address, k)
            if address:
                return np.ctypeslib.as_array(C.cast(address, C.POINTER(kind)), (self.items,)).copy()
        return None

    def _dates_to_lend(self):
        """`dates` for another data set. Times that are all missing have no moments: days are all there is."""
        return [(of[0], "date") if of and not library().qn_data_moments(self._address, k) else of
                for k, of in enumerate(self.dates)]

    @property
    def dates(self):
        """For each feature None, or for dates what a network gets of them and "date", "time" (with
        times of day) or "UTC time"."""
        found = []
        for k in range(self.features):
            parts = C.create_string_buffer(_abi.QN_DATE_TEXT)
            kind = _DATE_KINDS[library().qn_data_dates(self._address, k, parts, len(parts))]
            found.append((parts.value.decode(), kind) if kind else None)
        return found

    def date(self, item, feature):
        """The date of an item, "" where it is missing: "2026-11-28" or "2026-11-28T13:30:00"."""
        when = C.create_string_buffer(40)
        library().qn_data_date(self._address, item, feature, when, len(when))
        return when.value.decode()

    @property
    def _rules(self):
        """The rules of reading that changed something, as a recipe names them."""
        rules = C.create_string_buffer(_abi.QN_RULES_TEXT)
        library().qn_data_rules(self._address, rules, len(rules))
        return rules.value.decode()

    @property
    def note(self):
        """What a reader decided in doubt, or None."""
        note = said(library().qn_data_note(self._address))
        return spelled(note) if note else None

    @property
    def names(self):
        """Names of the features; None where there are none."""
        names = [said(library().qn_data_feature_name(self._address, k))
                 for k in range(self.features)]
        return names if any(name is not None for name in names) else None

    @property
    def categories(self):
        """The texts of each column, ascending, None for one of numbers; None where all are numbers."""
        found = [[said(library().qn_data_category(self._address, k, i))
                  for i in range(library().qn_data_categories(self._address, k))] or None
                 for k in range(self.features)]
        return found if any(found) else None

    @property
    def _kinds(self):
        """For each feature its name, or None, and its number of categories."""
        return [(said(library().qn_data_feature_name(self._address, k)),
                 library().qn_data_categories(self._address, k)) for k in range(self.features)]

    @property
    def digest(self):
        """SHA-256 of values and labels (docs/exactness.md 2.2)."""
        return library().qn_data_digest(self._address).decode()

    @property
    def format(self):
        """What it was made from: "array", "synth", or a file's format such as "csv" or "npy.gz"."""
        return library().qn_data_format(self._address).decode()

    @property
    def image_shape(self):
        """(channels, rows, columns) of an item that is an image; None where no shape is known.

        ``data.values.reshape(-1, *data.image_shape)`` are the images.
        """
        rows, columns = C.c_uint32(), C.c_uint32()
        library().qn_data_image_size(self._address, rows, columns)
        if not rows.value:
            return self._image
        return library().qn_data_image_channels(self._address), rows.value, columns.value

    @property
    def files(self):
        """The name of the file that each item was read from, below its folder; None without files."""
        if not library().qn_data_item_name(self._address, 0):
            return None
        return [os.fsdecode(library().qn_data_item_name(self._address, i))
                for i in range(self.items)]

    def write_sheet(self, path, augment=None, mixup=None, cutmix=None, shape=None):
        """Writes a contact sheet as PNG: the first 16 images of each class in a row.

        An image with a mask has it to the right.

        Parameters
        ----------
        path : str or path
            The file.
        augment, mixup, cutmix : optional
            As `train` takes them. A row is then the first image of a class, and how a training with
            seed 1 and all items sees it in epochs 1 to 15. Below a mixture are its classes and shares.
        shape : str or tuple of int, optional
            The image that a flat row of pixels is: "28x28", (3, 32, 32).
        """
        options, shape = sized(_abi.qn_sheet_options), shape_of(self, shape_text(shape))
        given = {"augment": augment, "mixup": mixup, "cutmix": cutmix, "shape": shape}
        kept = [assign(options, name, value) for name, value in given.items() if value is not None]
        call("qn_data_write_sheet", self._address, C.byref(options), text(path))
        del kept

    def write(self, path, format=None, labels=None):
        """Writes the data set to a file that `open` reads, with the same digest.

        Parameters
        ----------
        path : str or path
            The file. It is complete, or the old one is as it was.
        format : str, optional
            "csv", "npy", "npz", "libsvm", "idx" or "tar". By default the ending of the path tells.
        labels : str or path, optional
            NPY and IDX: the file of the labels. Without it they are left out.

        Returns
        -------
        str or None
            What `open` has to be told of this file, where it has to be told something.

        Raises
        ------
        InputError
            The format cannot hold the data, such as categories in NPY.
        """
        call("qn_data_write", self._address, text(format), text(path), text(labels))
        name = format or library().qn_data_write_format(os.fsencode(path)).decode()
        if name in ("npy", "idx") and labels is None:
            return None
        note = C.create_string_buffer(480)
        library().qn_data_reading(self._address, text(name), note, len(note))
        return spelled(note.value.decode()) or None

    def split(self, shares, seed=1, stratify=False):
        """Cuts the items into parts: each item is in one of them, and keeps its place in the order.

        Parameters
        ----------
        shares : dict or sequence of float
            The share of each part, with the sum 1 and at most 9 digits after the point, such as
            ``{"train": 0.8, "test": 0.2}``.
        seed : int
            Another seed puts other items into a part.
        stratify : bool
            Cut each class by itself.

        Returns
        -------
        dict or list of Data
            As `shares`. The same items as those of ``quern data split``.
        """
        named = hasattr(shares, "values")
        given = [round(float(share) * 1e9) for share in (shares.values() if named else shares)]
        if sum(given) != 10**9 or min(given) < 1:
            raise UsageError(f"the shares have the sum {sum(given) / 1e9:.9g}", "shares",
                             "give shares above 0 with the sum 1")
        if not 0 <= seed < 2**64:  # ctypes would wrap it
            raise UsageError(f"seed cannot be {seed!r}", "", "give a whole number from 0")
        parts = (C.c_void_p * len(given))()
        call("qn_data_split", self._address, (C.c_uint64 * len(given))(*given), len(given), seed,
             int(stratify), parts)
        made = [Data._of(part) for part in parts]
        return dict(zip(shares, made)) if named else made

    def folds(self, folds=5, seed=1, stratify=None):
        """The folds of a cross validation, one after the other.

        Parameters
        ----------
        folds : int
            Their number, from 2 to 256.
        seed : int
            Another seed puts other items into a fold.
        stratify : bool, optional
            Give each fold its share of every class. Default: where there are classes.

        Yields
        ------
        (Data, Data)
            All items that are not in the fold, and those that are. The same as in ``quern search``.
        """
        stratify = bool(library().qn_data_labels(self._address)) if stratify is None else stratify
        for number, value in (("folds", folds), ("seed", seed)):
            if not 0 <= value < (2**32 if number == "folds" else 2**64):  # ctypes would wrap it
                raise UsageError(f"{number} cannot be {value!r}", "", "give a whole number from 0")
        for fold in range(max(folds, 1)):
            train, valid = C.c_void_p(), C.c_void_p()
            call("qn_data_fold", self._address, folds, fold, seed, int(stratify), C.byref(train),
                 C.byref(valid))
            yield Data._of(train.value), Data._of(valid.value)

    def describe(self, quantiles=(0.25, 0.5, 0.75), *, by_class=False, correlation=False,
                 histograms=False, bins=None, as_frame=False, threads=0, devices=None):
        """Statistics of each column, each computed exactly and rounded once.

        Columns are the features, then the real labels where there are some. Missing values are left
        out. The numbers are the same on any devices and for any order of the items.

        Parameters
        ----------
        quantiles : sequence of float, optional
            Numbers from 0 to 1. Between two values the result is interpolated, as NumPy does it.
        by_class, correlation, histograms : bool, optional
            What to compute, too.
        bins : int, optional
            Bins of a histogram. By default 1 + log2 of the number of values, rounded up.
        as_frame : bool, optional
            A DataFrame of pandas with the numbers of all items instead of a dict.
        threads : int, optional
            By default all cores.
        devices : str, optional
            As ``"cpu,cuda:0"``. By default the CPU, and GPUs where the values, or the pairs of
            columns, are many.

        Returns
        -------
        dict
            ``names`` of the columns. Arrays with a number for each column: ``count`` (values that
            are not missing), ``missing``, ``sum``, ``mean``, ``variance`` and ``deviation``
            (divided by count - 1), ``population_deviation`` (by count), ``skewness`` (adjusted, as
            pandas has it), ``minimum``, ``maximum``. ``quantiles``: columns x quantiles, and
            ``quantile``, their numbers. ``categories``: for each column None, or how often each
            category occurs. ``by_class``: the same with one more dimension in front.
            ``covariance``, ``correlation``: columns x columns, each number of the items that have
            both values. ``histograms``: for each column (counts, edges). A number that is not
            defined is NaN. Dates count as days since 1970-01-01, with their times as a part of a
            day. ``dates``: for each column None, or of dates a dict of ``mean``, ``minimum``,
            ``maximum`` and ``quantiles`` as datetime64, in UTC where the column has a zone. In a
            DataFrame they are Timestamps, and deviations are in days.
        """
        from . import statistics

        answer = statistics.describe(self, quantiles, by_class, correlation, histograms, bins,
                                     threads, devices)
        return statistics.frame(answer) if as_frame else answer

    def __len__(self):
        return self.items

    def __repr__(self):
        labels = f", {self.classes} classes" if self.classes else ""
        labels = ", real labels" if self.targets is not None else labels
        labels += _several.about(self)
        return f"<quern.Data: {self.items} items of {self.features} features{labels}>"


def shape_text(given):
    """(3, 32, 32) as the text that options are."""
    return "x".join(map(str, given)) if isinstance(given, (tuple, list)) else given


def shape_of(data, given):
    """The shape of the items for a training: as given, or that of an array, whose channels come
    first. Where they come last, the array says nothing by itself."""
    image = data._image
    if image is None or not isinstance(given, (str, type(None))):
        return given
    last = image[0] not in (1, 3, 4) and image[2] in (1, 3, 4)
    if given is None:
        return None if last else shape_text(image)
    if ("1x" + given if given.count("x") == 1 else given) == shape_text(image):
        return given
    remedy = ("give values.transpose(0, 3, 1, 2)" if last else
              "give items x channels x rows x columns; a single item is values[None]")
    raise UsageError(f"the items of the array are {shape_text(image)}, and the shape is {given}", "", remedy)


def _table(values, stream, columns):
    """The table of what a user gave, and the weights that it holds, or None. `columns`: members of
    qn_data_options."""
    from . import _arrays, _arrow

    if stream is None:
        names = _arrow.column_names(values)
        values = _arrays.values_of(values, "tokens" in columns)
        if values.dtype.kind in "biuf":
            if "dates" in columns:
                raise TypeError("dates: only for files, tables with named columns, and arrays of dates or objects")
            if "tokens" in columns:
                return _arrays.Table(_arrays.tokens_of(values, columns["tokens"], columns.get("context")), names, None), None
            return _arrays.table_of(values, names), None
        stream = _arrow.objects(values, names)
    read = Data._of(stream.read(unlabelled=1, **columns))
    whole = [library().qn_data_feature_type(read._address, k) == _abi.QN_U8
             for k in range(read.features)]
    words = [library().qn_data_text_inputs(read._address, k) > 0 for k in range(read.features)]
    exact = {k: column for k in range(read.features) for column in [read._exact(k)] if column is not None}
    return _arrays.Table(read.values, read.names, read.categories, whole, read._rules, exact,
                         dates=read._dates_to_lend(),
                         date_format=said(library().qn_data_date_format(read._address)), texts=words,
                         text_features=columns.get("text_features")), read.weights


def _columns(table, kind):
    """The addresses of the exact columns of this type, for the library; None: there are none."""
    import numpy as np

    exact = table.exact or {}
    found = [exact[k] if k in exact and exact[k].dtype == kind else None for k in range(table.values.shape[1])]
    if all(column is None for column in found):
        return None
    return (C.c_void_p * len(found))(*(None if column is None else column.ctypes.data for column in found))


def _texts(names):
    """An array of texts for the library."""
    if names is None:
        return None
    return (C.c_char_p * len(names))(*(text(name) for name in names))


class _Memory:
    def __init__(self, owner, address, shape, kind, strides):
        import sys

        order = "<" if sys.byteorder == "little" else ">"
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": shape, "data": (address, True),
                                    "typestr": kind.replace("=", order), "strides": strides or None}


def _view(owner, address, shape, kind, strides=None):
    """A NumPy array over memory of the library that keeps its owner alive."""
    import numpy as np

    return np.asarray(_Memory(owner, address, shape, kind, strides))


def open(path, labels=None, label=None, unlabelled=False, threads=0, **more):
    """Reads a file of items in one of the formats of docs/formats.md, or a folder or an archive of
    images. All but NPZ and Parquet may be compressed with gzip, zstd, bzip2 or xz, or be one file in
    a ZIP archive.

    Among ranks all call this together: one rank of each machine reads the file, and the others
    share its memory.

    Parameters
    ----------
    path : str or path, or several
        The file, or the address of a PostgreSQL server, "postgresql://USER@HOST/DATABASE", with
        ``query``. The content of a file decides which format it has. "FILE.npz:NAME" is one array of an NPZ
        archive. A list of paths is one table, in that order; so are a folder of files, a pattern
        ("part-*.csv") and "@FILE", a text with a path in each line. An iterator, such as
        ``pathlib.Path.glob`` gives, is sorted by path.
    labels : str or path, or several, optional
        IDX, NPY and NPZ: the file of labels. Of several files, one for each, in the same order.
    label : str or int, or a list of these, optional
        Tables: the label column: its name, a number from 1, or "last". Default: the first. A list of
        several columns are the labels of each item, 0 or 1 each; as a text "a,b" or "3-7".
    unlabelled : bool
        Tables: no column is the label. Images: folders are not classes.
    threads : int
        For reading; 0: every core.
    **more
        Other members of qn_data_options in <quern/data.h>: the texts ``task``, ``header``
        ("yes", "no"), ``features``, ``drop``, ``category`` and ``text`` ("age,3-7"), ``text_features``,
        ``weight``, ``query``, ``dates``, ``date_format``, ``tokens`` (with ``context`` and ``item``), ``resize``,
        ``masks``, ``ignore`` and ``shape``, ``skip_broken``, ``no_cache``.

    Returns
    -------
    Data
    """
    options = _reading(labels=labels, label=label, unlabelled=unlabelled, threads=threads, **more)
    return Data._of(new("qn_data_share_files", ranks.current(), 0, *_list_of(path), options))


def _list_of(path):
    """The paths of one table, and their number, for the library."""
    paths = [text(one) for one in paths_of(path)]
    return (C.c_char_p * len(paths))(*paths), len(paths)


def _reading(labels=None, label=None, unlabelled=False, threads=0, **more):
    """The options for reading files."""
    if not (labels is None or isinstance(labels, bytes) or is_paths(labels)):
        raise UsageError("the labels of a file are a column of it, or a file of their own", "",
                         "give label=, the name of the column, or read the file into a table first")
    options = _abi.qn_data_options()
    library().qn_data_options_init(options)
    if labels is not None:
        first, *others = [text(one) for one in paths_of(labels)]
        options.labels_path, options.labels_more_count = first, len(others)
        options.labels_more = (C.c_char_p * len(others))(*others)
    options.label_column = text(_several.column_text(None, label, "label")) if label is not None else None
    options.unlabelled, options.threads = int(unlabelled), threads
    members = {name for name, _ in options._fields_}
    if "shape" in more:
        more["shape"] = shape_text(more["shape"])
    for name, value in more.items():
        if name not in members:
            raise TypeError(f"open() has no option {name!r}")
        try:
            if value is not None:
                assign(options, name, value)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{name} cannot be {value!r}") from None
    return options


def digits(items, seed=1, first=0):
    """Images like handwritten digits, drawn by the library: 784 bytes, labels 0 to 9.

    Parameters
    ----------
    items : int
        How many.
    seed, first : int
        Image ``i`` depends on ``seed`` and ``first + i`` alone.

    Returns
    -------
    Data
    """
    for word, value in (("items", items), ("seed", seed), ("first", first)):
        if not isinstance(value, numbers.Integral) or not 0 <= value < 2**64:  # ctypes would wrap it
            raise UsageError(f"{word} cannot be {value!r}", "", "give a whole number from 0")
    return Data._of(new("qn_data_synth_digits", int(seed), int(first), int(items)))


def streamed(given):
    """What a user gave, where it does not come in batches (_streams.py); NumPy is not needed for paths."""
    if isinstance(given, (str, bytes, os.PathLike, Data)):
        return given
    from . import _streams

    return _streams.of(given)


def data_of(given, labels=None, **columns):
    """The data set of what a user gave: one already, names of files, a pair, a table."""
    unlabelled = columns.pop("expected_unlabelled", False)  # of files alone
    given = streamed(given)
    if is_paths(given):
        if unlabelled and labels is None and not {"label", "masks"} & set(columns):
            columns["unlabelled"] = True
        task = columns.pop("expected_task", None)
        return open(given, labels=labels, **{"task": task, **columns})
    from . import _arrow

    task = columns.pop("task", None)
    expected = {"label_column": columns.pop("expected_label", None),
                "expected_weight": columns.pop("expected_weight", None)}
    rules = columns.pop("expected_rules", None)
    if not columns.get("expected_tokenizer"):
        columns.pop("expected_features", None)
    for word in "classes", "expected_categories", "expected_text", "expected_task", "expected_resize":  # of files alone
        columns.pop(word, None)
    if isinstance(given, Data):
        columns = {word: value for word, value in columns.items() if not word.startswith("expected_")}
        if columns:
            raise TypeError(f"{', '.join(sorted(columns))}: only for files and tables")
        if labels is not None:
            raise UsageError("labels were given beside a data set, which holds its own", "",
                             "make a data set of the values and these labels")
        return given
    if labels is None and isinstance(given, tuple) and len(given) == 2:
        given, labels = given
    members = {"label_column": columns.pop("label", None), "features": columns.pop("features", None),
               "drop": columns.pop("drop", None), "category": columns.pop("category", None),
               "text": columns.pop("text", None), "text_features": columns.pop("text_features", None),
               "weight": columns.pop("weight", None), "dates": columns.pop("dates", None),
               "date_format": columns.pop("date_format", None), **{word: columns.pop(word, None)
               for word in ("tokens", "context", "expected_tokens", "expected_context", "expected_tokenizer", "expected_features")}}
    if columns:
        raise TypeError(f"{', '.join(sorted(columns))}: only for files")
    if not _arrow.is_table(given):
        members.pop("date_format")
    made = Data.__new__(Data)
    made._make(given, labels, members, task=task, expected=expected, rules=rules)
    return made
