"""Models: networks, or what another method has fitted, and the recipe that made them."""

import ctypes as C
import json
import os
import re
import tempfile

from . import _abi, _several, ranks
from ._library import call, library, new, owned, said, sized, text
from ._options import FILE, fill_compute
from ._known import as_in
from .data import data_of, shape_of, streamed
from .errors import FileError, UsageError


# Names of classes that are whole numbers, as the library writes them: below 2^31, and texts longer.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")

# The words of `features`, by the numbers of qn_summary.
_POOLS = (None, "mean", "max", "first", "last")


class Model:
    """A network or another kind of model, its numbers and its recipe. `train` and `load` make models,
    and `KMeans`, `PCA`, `Ridge` and `Lasso` by their `fit`; none changes.

    Attributes
    ----------
    report : Report or None
        How the training went; None for a model from a file.
    complete : bool
        False when a callback ended the training early. Such a model can predict, but its recipe
        does not lead to it, so it cannot be saved.
    """

    def __init__(self, address, epochs=list, report=None, complete=True):
        if isinstance(address, (str, bytes, os.PathLike)):
            raise TypeError("a model file is read by quern.load(path)")
        self._address = address
        self._release = owned(self, "qn_model_free", address)
        self._epochs, self._history = epochs, None  # asked when somebody wants the history
        self.report, self.complete = report, complete

    @property
    def history(self):
        """The epochs of the training, a list of `Epoch`; empty for a model from a file."""
        if self._history is None:
            self._history = self._epochs()
        return self._history

    @property
    def kind(self):
        """What it is: "network", "kmeans", "pca", "ridge" or "lasso"."""
        return library().qn_model_kind(self._address).decode()

    @property
    def inputs(self):
        """Number of features of an item."""
        return library().qn_model_inputs(self._address)

    @property
    def outputs(self):
        """Number of outputs."""
        return library().qn_model_outputs(self._address)

    @property
    def parameters(self):
        """Number of weights and biases."""
        return library().qn_model_parameters(self._address)

    @property
    def layers(self):
        """A line about each layer, such as "dense 500 tanh"."""
        line, lines = C.create_string_buffer(256), []
        for layer in range(library().qn_model_layers(self._address)):
            library().qn_model_layer_text(self._address, layer, line, len(line))
            lines.append(line.value.decode())
        return lines

    @property
    def recipe(self):
        """The recipe, as a dict (docs/exactness.md 11.1)."""
        return json.loads(library().qn_model_recipe(self._address))

    @property
    def digest(self):
        """SHA-256 of the model's file."""
        return library().qn_model_digest(self._address).decode()

    @property
    def real(self):
        """True for a model that predicts numbers, such as one of real labels."""
        return library().qn_model_classes(self._address) == 0

    @property
    def classes(self):
        """Names of the classes, or of several labels; None where they are numbers."""
        labels, rows, _ = self._answers or (0, 0, 0)
        count = labels if labels and not rows else library().qn_model_classes(self._address)
        names = [said(library().qn_model_class_name(self._address, k)) for k in range(count)]
        return names if any(name is not None for name in names) else None

    @property
    def names(self):
        """Names of the features in the training data; None where there were none."""
        count = self.recipe["features"]
        names = [said(library().qn_model_feature_name(self._address, k)) for k in range(count)]
        return names if any(name is not None for name in names) else None

    def tensor(self, name):
        """A copy of a tensor of the file, such as "layer0.weight" (outputs x inputs), float32; or
        "centres" of a k-means model, float64.

        Raises
        ------
        KeyError
            There is no such tensor.
        """
        import numpy as np

        rows, columns = C.c_uint64(), C.c_uint64()
        found = (library().qn_model_tensor(self._address, text(name), rows, columns)
                 or library().qn_model_real_tensor(self._address, text(name), rows, columns))
        if not found:
            raise KeyError(name)
        shape = (rows.value, columns.value) if columns.value else (rows.value,)
        return np.ctypeslib.as_array(found, shape).copy()

    def predict(self, data, *, outputs=False, flips=False, original_size=False, **compute):
        """Applies the model to every item.

        Parameters
        ----------
        data : Data, array_like, DataFrame, Arrow table, sparse matrix, str or path, or several paths
            The items. Of `Parts` each rank gets the predictions of the whole; of ``parts.own`` those of
            its own rows, which then do not travel. Columns with names are matched by name, in any order. Paths may be those of
            image files, such as "photo.jpg".
        outputs : bool
            Return all outputs of the network instead of classes.
        flips : bool
            Of images: means of the outputs for each image and its mirror image, left and right
            exchanged.
        original_size : bool
            Of masks: a list of arrays, each in the size that its image had before it was resized. A
            pixel that a crop has cut off is 255.
        **compute
            ``devices``, ``threads`` and the other options of `train` that choose devices. And
            ``label`` and the other options of `open`, for a file.

        Returns
        -------
        ndarray
            The class of each item: numbers, or names where the classes have names. Names that are
            all whole numbers, such as "3" and "-7", come as numbers too (int64). float32 for a
            model of real labels. Of a k-means model the clusters; with `outputs` the distances from
            all centres. Of a PCA model its outputs in any case. With `outputs` float32, items x
            outputs. A model trained with
            ``missing="drop"`` gives NaN for an item that lacks a value, and None among names and
            numbers from names, or else -1.

            Of a model of several labels uint8, items x labels, each 1 or 0; with `outputs` their
            probabilities. Of a model of masks uint8, items x rows x columns, the class of each pixel;
            with `outputs` items x rows x columns x classes. 255 for an item that lacks a value.

            Of a model of tags of words a list of texts for each item: the tag of each word, and "-100"
            for a word without a token. For an array of tokens uint8, items x 1 x tokens, and with
            `outputs` items x 1 x tokens x classes.

            Of a model of next tokens the most probable token in the place of the last one of each
            item, int32; `logprobs` has more.
        """
        import numpy as np

        columns = {word: compute.pop(word) for word in list(compute) if word in FILE}
        data = streamed(data)
        data = data_of(data, **self._without_others(data, self._as_trained(columns)))
        choice, kept = self._compute(data, compute)
        next = library().qn_model_predicts(self._address) == _abi.QN_PREDICTS_NEXT
        if next and not outputs and not flips:
            return self._next(data, choice, "tokens")
        if self._answers and not next and not flips:  # which the library refuses for these
            found = self._several(data, choice, outputs)
            if original_size:
                return _several.originals(data, found, outputs)
            tags = None if outputs else _several.words(data, found, self.classes)
            return found if tags is None else tags
        if original_size and not self._answers:
            raise UsageError("original_size is for models that predict masks", "", "leave it out")
        outputs = outputs or library().qn_model_predicts(self._address) == _abi.QN_PREDICTS_COMPONENTS
        floats = outputs or self.real
        shape = (data.items, self.outputs) if outputs else (data.items,)
        results = np.empty(shape, np.float32 if floats else np.int32)
        into = results.ctypes.data
        classes = None if floats else C.cast(into, C.POINTER(C.c_int32))
        numbers = C.cast(into, C.POINTER(C.c_float)) if floats else None
        scores, numbers = (None, numbers) if outputs else (numbers, None)
        call("qn_predict_flipped" if flips else "qn_predict", self._address, data._address, choice, classes, scores, numbers)
        del kept
        names = None if floats else self.classes
        if names is None:
            return results
        if all(map(_WHOLE.fullmatch, names)):
            names = [int(name) for name in names]
            if not (results < 0).any():
                return np.array(names, np.int64)[results]
        # An item that lacks a value (missing="drop") has the number -1, and so the last name.
        return np.array([*names, None], dtype=object)[results]

    def logprobs(self, data, *, each=False, **compute):
        """How probable texts are to a model of next tokens.

        Parameters
        ----------
        data, **compute
            As in `predict`. A text is encoded by the tokenizer of the model. With ``item="line"``
            each line is an item, with ``item="row"`` each row of a table's column ``text``.
        each : bool
            Return a number for each token, not for each item.

        Returns
        -------
        ndarray
            For each item the natural logarithm of the probability of its tokens after the first one,
            float64. With `each` float32, items x positions: that of each token after the first, NaN
            where an item has none. An item longer than the context has several rows there.

        Raises
        ------
        UnsupportedError
            The model does not tell which token comes next.
        """
        columns = {word: compute.pop(word) for word in list(compute) if word in FILE}
        data = data_of(data, **self._as_trained(columns))
        choice, kept = self._compute(data, compute)
        found = self._next(data, choice, "each" if each else "items")
        del kept
        return found

    def features(self, data, *, layer=None, pool=None, **compute):
        """The outputs of a layer inside a network, such as embeddings of texts or images.

        Parameters
        ----------
        data, **compute
            As in `predict`.
        layer : int or "body"
            Number of the layer in `layers`, from 0; one from -1 on counts from the last. Without it
            the last one before the head.
        pool : {"mean", "max", "first", "last"}
            One number of each channel from all positions of a text, or pixels of an image. Of a text
            only those below its length count.

        Returns
        -------
        ndarray
            float32: items x positions x channels of texts, items x channels x height x width of
            images, items x channels with `pool`. Without it positions after the end of a text say
            nothing. An item without a prediction has NaN.

        Raises
        ------
        UsageError
            The model lacks the layer.
        UnsupportedError
            The model is not a network.
        """
        import numpy as np

        if pool not in _POOLS:
            raise ValueError(f"pool cannot be {pool!r}: it is mean, max, first, last or None")
        columns = {word: compute.pop(word) for word in list(compute) if word in FILE}
        data = data_of(data, **self._as_trained(columns))
        choice, kept = self._compute(data, compute)
        shape, lengths = (C.c_uint32 * 3)(), C.c_uint32()
        number = C.c_uint32()
        call("qn_model_find_layer", self._address, text("body" if layer is None else str(layer)), number)
        which = (number.value, _POOLS.index(pool))
        call("qn_model_layer_shape", self._address, *which, shape, lengths)
        results = np.empty((data.items, *shape[:lengths.value]), np.float32)
        call("qn_predict_layer", self._address, data._address, choice, *which,
             C.cast(results.ctypes.data, C.POINTER(C.c_float)))
        del kept
        return results

    def _next(self, data, choice, wanted):
        """What qn_predict_next gives: of "items", of "each" token, or the last "tokens"."""
        import numpy as np

        positions = (self._answers or (1,))[0]
        texts = library().qn_data_texts(data._address)
        shape, form, kind = {"items": ((texts,), np.float64, C.c_double),
                             "tokens": ((texts,), np.int32, C.c_int32),
                             "each": ((data.items, positions), np.float32, C.c_float)}[wanted]
        results = np.empty(shape, form)
        into = C.cast(results.ctypes.data, C.POINTER(kind))
        call("qn_predict_next", self._address, data._address, choice,
             *(into if wanted == one else None for one in ("items", "tokens", "each")), None)
        return results

    @property
    def _answers(self):
        """(answers of an item where there are several, rows, columns of a mask); None: one answer."""
        rows, columns = C.c_uint32(), C.c_uint32()
        answers = library().qn_model_answers(self._address, rows, columns)
        return (answers, rows.value, columns.value) if answers else None

    def _several(self, data, choice, outputs):
        import numpy as np

        answers, rows, columns = self._answers
        shape = (data.items, rows, columns) if rows else (data.items, answers)
        if rows and outputs:
            shape = (*shape, self.outputs // (rows * columns))
        results = np.empty(shape, np.float32 if outputs else np.uint8)
        into = results.ctypes.data
        numbers = C.cast(into, C.POINTER(C.c_float)) if outputs else None
        classes = None if outputs else C.cast(into, C.POINTER(C.c_uint8))
        call("qn_predict_several", self._address, data._address, choice, classes, numbers)
        return results

    def _compute(self, data, given):
        """Where to apply the model to data that fits, and what must stay alive."""

        if data._image is not None:
            shape_of(data, self.recipe.get("shape") or None)
        choice = _abi.qn_compute()
        kept = fill_compute(choice, given)
        choice.cluster = None if data._is_own else ranks.current()
        return choice, kept

    def generate(self, prompts, *, stop=(), **options):
        """Continues texts: of a model that tells which token comes next.

        Parameters
        ----------
        prompts : str, or list of str
            The texts. A model of numbers of tokens takes lists of whole numbers, too.
        stop : str, or list of str
            Texts before which an answer ends.
        **options
            As of `quern generate`, with underscores: ``tokens=200``, ``temperature=0.8``, ``top_k``,
            ``top_p``, ``repetition``, ``seed=1``, ``answers=1``, ``chat``, ``system``, ``batch``; and
            ``log_probabilities=True``. Also ``threads`` and ``isa``. Several ranks share the answers.

        Returns
        -------
        quern.Answer, or list of them
            One for a str, where ``answers`` is 1; `str` makes a text of it. Else those of the first
            prompt, then of the next one.
        """
        from .generating import generate

        return generate(self, prompts, stop, options)

    def stream(self, prompt, *, stop=(), **options):
        """The pieces of the text that `generate` gives for one prompt, as they are made.

        Each of several ranks makes them on its own.
        """
        from .generating import stream

        return stream(self, prompt, stop, options)

    def evaluate(self, data, labels=None, *, flips=False, **compute):
        """Applies the model to labelled data and compares.

        Parameters
        ----------
        data, labels
            As in `train`. Columns and classes with names are matched by name.
        flips, **compute
            As in `predict`.

        Returns
        -------
        dict
            What `quern.evaluate` returns: accuracy, precision, recall, F1, the area under the ROC
            curve, log loss and calibration; of real labels the errors; of a k-means model the
            inertia.
        """
        from .evaluation import of_predictions

        columns = {word: compute.pop(word) for word in list(compute) if word in FILE}
        data = data_of(data, labels, **self._as_trained(columns))
        own, parts = getattr(data, "own", data), library().qn_data_parts(data._address)
        choice, kept = self._compute(own, compute)
        try:
            found = of_predictions(self._address, own._address, choice, flips, parts)
        except FileError:
            if not getattr(data, "_can_be_read_again", False):
                raise
            choice, kept = self._compute(data, compute)  # a rank has ended: the others read its rows
            found = of_predictions(self._address, data._address, choice, flips)
        del kept
        return found

    def _as_trained(self, columns):
        """Options for data that is read as the training data was."""
        predicts = library().qn_model_predicts(self._address)
        if predicts in (_abi.QN_PREDICTS_CLUSTERS, _abi.QN_PREDICTS_COMPONENTS):
            return {"expected_rules": said(library().qn_model_rules(self._address)),
                    "expected_features": self.inputs, "expected_unlabelled": True, **columns}
        label = said(library().qn_model_label_name(self._address))
        texts = [library().qn_model_text_inputs(self._address, k) for k in range(self.recipe["features"])]
        categories = [(said(library().qn_model_feature_name(self._address, k)),
                       library().qn_model_categories(self._address, k) + inputs) for k, inputs in enumerate(texts)]
        if predicts == _abi.QN_PREDICTS_NEXT:
            columns = {"task": "next", **columns}
        elif self._answers and label is None:  # folders of images are not its classes
            columns = {"expected_unlabelled": True, **columns}
        return as_in(columns, self.real, label, categories,
                     0 if self._answers else library().qn_model_classes(self._address),
                     said(library().qn_model_weight_name(self._address)),
                     said(library().qn_model_resize(self._address)),
                     library().qn_model_inputs(self._address),
                     said(library().qn_model_rules(self._address)),
                     said(library().qn_model_date_format(self._address)),
                     said(library().qn_model_tokens(self._address)),
                     library().qn_model_context(self._address),
                     said(library().qn_model_tokenizer(self._address)), texts=texts)

    def _without_others(self, data, columns):
        """Leaves out columns of a table that the model does not have, such as dates and labels."""
        from . import _arrow

        known = {name or "" for name in self.names or ()}  # a column named "" has no name in a model
        if not known - {""} or "drop" in columns or "features" in columns or not _arrow.is_table(data):
            return columns
        names = _arrow.column_names(data) or []
        others = [name for name in names if name not in known]
        if "label" not in columns and 0 < len(others) < len(names):
            columns.pop("expected_label", None)
            columns.pop("expected_weight", None)
            columns["drop"] = ",".join(_arrow.words_of(names, others))
        return columns

    def save(self, path):
        """Writes the model file (safetensors). Among ranks one of them writes.

        Raises
        ------
        FileError
            The file cannot be written; an old one is as before.
        """
        self._must_be_complete()
        cluster = ranks.current()
        if library().qn_cluster_is_writer(cluster):
            call("qn_model_save_among", self._address, text(path), cluster)

    def merge(self):
        """The model without adapters that computes as this one with them, but for roundings.

        Raises
        ------
        MismatchError
            It has no adapters.
        """
        self._must_be_complete()
        return Model(new("qn_model_merge", self._address))

    def save_onnx(self, path):
        """Writes the model as an ONNX file (opset 13) for other programs (docs/formats.md).

        The graph takes values as the training data has them: it scales them itself.

        Raises
        ------
        FileError
            The file cannot be written; an old one is as before.
        """
        self._must_be_complete()
        call("qn_model_write_onnx", self._address, text(path))

    def save_state(self, path, names="torchvision"):
        """Writes the parameters as ``load_state_dict`` of PyTorch's network takes them (docs/formats.md).

        Parameters
        ----------
        path : str or path
            A safetensors file, for ``safetensors.torch.load_file``.
        names : "torchvision" or "timm"
            The library whose names the parameters get.

        Raises
        ------
        UnsupportedError
            The network is not one of that library.
        """
        self._must_be_complete()
        call("qn_model_write_state", self._address, text(names), text(path))

    def save_pretrained(self, folder):
        """Writes a checkpoint that ``from_pretrained`` of the package transformers loads (docs/formats.md).

        The folder is made where it is absent. It gets config.json, model.safetensors and, where
        transformers has such a tokenizer, tokenizer.json.

        Raises
        ------
        UnsupportedError
            The network is not one that `import_pretrained` makes.
        """
        self._must_be_complete()
        call("qn_model_write_pretrained", self._address, text(folder))

    def save_peft(self, folder):
        """Writes the adapters of a model as the package peft loads them (docs/formats.md).

        The folder is made where it is absent. It gets adapter_config.json and
        adapter_model.safetensors, for ``PeftModel.from_pretrained``.

        Raises
        ------
        MismatchError
            The model has no adapters.
        UnsupportedError
            The network is not one that `import_pretrained` makes.
        """
        self._must_be_complete()
        call("qn_model_write_peft", self._address, text(folder))

    def _must_be_complete(self):
        if not self.complete:
            raise UsageError("the training was ended early, so the recipe does not lead to this model",
                             "", f"train again with epochs={len(self.history)}")

    def __bytes__(self):
        self._must_be_complete()
        with tempfile.TemporaryDirectory(prefix="quern-") as folder:
            path = os.path.join(folder, "model")
            call("qn_model_save", self._address, text(path))
            with open(path, "rb") as file:
                return file.read()

    def __reduce__(self):
        return _from_bytes, (bytes(self),)

    def __repr__(self):
        return f"<quern.Model: {self.recipe.get('model', self.kind)}>"


def load(path, adapter=None):
    """Reads a model file.

    Parameters
    ----------
    path : str or path
        The model.
    adapter : str or path, optional
        A file of low-rank adapters for it, as `train` with ``lora`` writes them. The model predicts with
        them. What it saves is these adapters alone; `Model.merge` makes one model of both. A folder that
        save_pretrained of the package peft wrote gives one model at once.

    Raises
    ------
    FileError
        It cannot be read.
    FormatError
        It is not a model, or damaged.
    MismatchError
        The adapters are of another model; or `path` has adapters alone.
    """
    model = Model(new("qn_model_share", ranks.current(), 0, text(path)))
    return model if adapter is None else _adapted(adapter, model)


def _adapted(path, base):
    """A model file of which adapters alone may be in the file, for a model or its path."""
    base = base if isinstance(base, Model) else load(base)
    if library().qn_path_is_folder(text(path)):
        return Model(new("qn_model_import_peft", base._address, text(path)))
    return Model(new("qn_model_adapt", ranks.current(), 0, text(path), base._address))


def fit(kind, data, labels=None, *, devices=None, threads=None, **options):
    """Fits a model of sums, as the command ``quern fit`` does; among ranks also over `Parts`.

    Parameters
    ----------
    kind : str
        "kmeans", "pca", "ridge" or "lasso".
    data, labels
        As for `train`. "ridge" and "lasso" need real labels.
    devices, threads : optional
        As for `train`.
    **options
        Numbers of the model: ``clusters=3``, ``components=2``, ``alpha=0.1``, as ``--set`` takes them.
        And the options of `Data` and `open`, such as ``label``.

    Returns
    -------
    Model
    """
    columns = {word: options.pop(word) for word in list(options) if word in FILE}
    return _fitted(kind, data_of(data, labels, **columns), devices, threads, **options)[0]


def _fitted(kind, data, devices=None, threads=None, **parameters):
    """The model of the library's qn_fit, and its report."""
    options, report, made = sized(_abi.qn_fit_options), sized(_abi.qn_fit_report), C.c_void_p()
    options.kind = text(kind)
    options.parameters = text(" ".join(f"{name}={number!r}" for name, number in parameters.items()))
    ranks._over_ranks(options, devices)
    options.compute.contents.threads = threads or 0
    call("qn_fit", data._address, options, C.byref(made), report)
    return Model(made.value), report


def _fitted_again(model, data, compute):
    """The model that the recipe of `model` gives from its data, by qn_fit_again."""
    struct, made = sized(_abi.qn_compute), C.c_void_p()
    struct.cluster = ranks.current()
    kept = fill_compute(struct, compute)
    call("qn_fit_again", model._address, data._address, struct, C.byref(made))
    del kept
    return Model(made.value)


def _from_bytes(content):
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        path = os.path.join(folder, "model")
        with open(path, "wb") as file:
            file.write(content)
        return Model(new("qn_model_load", text(path)))
