"""Models of the parameters that other programs have trained: `import_state`, `import_pretrained`."""

import contextlib
import ctypes as C
import json
import os
import re
import tempfile
from collections.abc import Mapping

from . import _abi
from ._library import call, library, new, owned, said, sized, text
from .errors import FormatError, InputError, UnsupportedError, UsageError
from .model import Model

# The names that safetensors has for torch's types.
_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int64": "I64",
          "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}
# Where a checkpoint of a training keeps the parameters.
_WRAPPERS = ("state_dict", "model_state_dict", "model", "net")
_REMEDY = ("in a program that you trust load it and write the parameters alone: "
           "torch.save(net.state_dict(), path), or safetensors.torch.save_file(net.state_dict(), path)")


def import_state(path, model=None, inputs=None, *, classes=None, loss=None, scale=None, resize=None,
                 config=None):
    """A model of the parameters that PyTorch has trained (docs/formats.md).

    Parameters
    ----------
    path : str, path or mapping
        What ``safetensors.torch.save_file(net.state_dict(), path)`` or
        ``torch.save(net.state_dict(), path)`` wrote. The second needs torch, which reads it with
        ``weights_only=True``. Or ``net.state_dict()`` itself.
    model : str, optional
        The layers of the network, in their order: "dense 64 relu; dense 3 softmax". By default the
        names of the tensors say which network of torchvision or timm it is.
    inputs : int or tuple, optional
        Number of features of an item; or channels, height and width. By default those of `config`
        or of the network that was found.
    classes : int, list of str or path, optional
        Number of classes or their names, in the order of the outputs; 0 for a real number; or a
        file of names, as for ``quern model import``.
    loss : str, optional
        What the last layer is for. By default it decides: a softmax gives classes, a sigmoid several
        labels (or two classes), and "mse" is taken where `classes` is 0. With "binary" a network that
        was found by its names gives a label for each output.
    scale : str, optional
        "none", "unit" (bytes divided by 255, as ToTensor does), "fraction", "imagenet" or numbers of
        channels. By default that of `config`, else "none", or "imagenet" where the network was found.
    resize : str, optional
        What is done to photographs before: "short 256 crop 224 bilinear". By default that of
        `config`; where the network was found for 224 x 224 pixels, that of torchvision.
    config : path, optional
        timm's config.json of the network.

    Raises
    ------
    MismatchError
        A layer has no tensors, or a tensor no layer; or no known network has such names.
    FormatError
        The file is neither a safetensors file nor one that torch reads with ``weights_only=True``.
    """
    with contextlib.ExitStack() as until:
        state = _state_file(path, until)
        asked = None if inputs is None else (inputs,) if isinstance(inputs, int) else tuple(inputs)
        about = _about(config, asked)
        found = None
        if model is None:
            found = sized(_abi.qn_import_found)
            call("qn_model_recognise", text(state), found)
            model = said(found.model)
        shape = asked or _shape(about and said(about.shape)) or _shape(found and _ready_shape(model))
        if shape is None:
            raise UsageError("the shape of an item is not known", remedy="give inputs=(3, 224, 224)")
        usual = found is not None and shape == (3, 224, 224)
        resize = resize or (about and said(about.resize)) or ("short 256 crop 224 bilinear" if usual else None)
        scale = scale or (about and said(about.scale)) or ("imagenet" if found else "none")
        outputs = found.classes if found is not None else None
        named = _classes(classes, about, outputs, until)
        like = _like(shape, resize, named)
        job = _abi.qn_train_options()
        library().qn_train_options_init(job)
        two = found is not None and found.classes == 1 and loss == "binary"
        job.model, job.scale = text(_two_classes(model) if two else model), text(scale)
        job.loss = text(loss) if loss else None
        job.shape = text("x".join(map(str, shape))) if len(shape) > 1 else None
        made = Model(new("qn_model_import", text(state), job, like.address, _abi.qn_import_told(), None))
        _check_classes(named, made.recipe["model"])
        return made


def import_pretrained(path, *, type=None, context=None, tokenizer=None, config=None, task=None):
    """A model of a checkpoint of the package transformers (docs/formats.md).

    Parameters
    ----------
    path : str, path or mapping
        The folder that ``save_pretrained`` wrote; its ``model.safetensors`` or the index of several; or
        a ``pytorch_model.bin``, which needs torch and is read with ``weights_only=True``. A folder that
        has only this file is one, too. Or ``net.state_dict()`` itself.
    type : str, optional
        What the network is: "gpt2". By default the ``model_type`` of `config`.
    context : int, optional
        Positions of an item, at most those of the network, which are the default.
    tokenizer : path, optional
        Its tokenizer.json, or "none": the data of the model are numbers of tokens. By default the
        tokenizer.json beside the tensors, if there is one.
    config : path, optional
        Its config.json. By default the one beside the tensors.
    task : str, optional
        "next", "classify" or "tags", a class of each token. By default what the checkpoint was saved
        for. Where it has no such head, the last layers begin with random weights.

    Raises
    ------
    MismatchError
        A tensor is missing, has another shape than config.json says, or belongs to no part.
    UnsupportedError
        What the network or its tokenizer cannot do here.
    """
    with contextlib.ExitStack() as until:
        mapping = isinstance(path, Mapping)
        source = path if mapping else _pickled(path) or path
        state = _state_file(source, until)
        how = sized(_abi.qn_pretrained_options)
        how.type, how.context, how.task = text(type) if type else None, context or 0, text(task) if task else None
        for word, given in ("config", config), ("tokenizer", tokenizer):
            # Of a pickle the tensors are in another folder now.
            chosen = given or (None if mapping or state is source else _beside(source, word))
            setattr(how, word, text(chosen) if chosen else None)
        return Model(new("qn_model_import_pretrained", text(state), how, _abi.qn_import_told(), None))


def _pickled(path):
    """The file of torch in a folder that has no other; None: there is another, or none."""
    file = os.path.join(path, "pytorch_model.bin") if os.path.isdir(path) else None
    others = ("model.safetensors", "model.safetensors.index.json")
    return file if file and os.path.isfile(file) and not any(os.path.exists(os.path.join(path, o)) for o in others) else None


def _beside(path, word):
    """The config.json or tokenizer.json in the folder of a file; None: there is none."""
    found = os.path.join(os.path.dirname(os.fspath(path)), word + ".json")
    return found if os.path.isfile(found) else None


# ---------------------------------------------------------------- what other files say

class _Config:
    """What a file says; its texts live as long as this."""

    def __init__(self, opener, *arguments):
        self._address = new(opener, *arguments)
        self._release = owned(self, "qn_import_config_free", self._address)
        self.about = sized(_abi.qn_import_about)
        call("qn_import_config_get", self._address, self.about)

    def __getattr__(self, name):
        return getattr(self.about, name)


def _about(config, shape):
    if config is None:
        return None
    return _Config("qn_import_config_open", text(config), text("x".join(map(str, shape))) if shape else None)


def _shape(words):
    return tuple(map(int, words.split("x"))) if words else None


def _ready_shape(name):
    for index in range(library().qn_ready_count()):
        ready = sized(_abi.qn_ready_model)
        call("qn_ready_get", index, ready)
        if said(ready.name) == name:
            return said(ready.shape)
    return None


def _two_classes(name):
    """The text of a ready model whose only output tells two classes apart."""
    job = _abi.qn_train_options()
    library().qn_train_options_init(job)
    job.model, job.loss = text(name), b"binary"
    network = new("qn_network_open", job, 0, 2)
    try:
        return said(library().qn_network_text(network))
    finally:
        library().qn_network_free(network)


def _names(about):
    return [said(about.class_name[k]) for k in range(about.classes)] if about.class_name else None


def _classes(classes, about, outputs, until):
    """The number of classes, or their names."""
    if isinstance(classes, (str, os.PathLike)):
        return _names(_Config("qn_import_labels_open", text(classes)))
    if classes is not None:
        return classes if isinstance(classes, int) else list(classes)
    names = _names(about) if about is not None else None
    return names if names and (outputs is None or len(names) == outputs) else outputs


def _check_classes(named, model):
    """Each output has a class; one alone tells two apart, or is a real number."""
    outputs = int(re.search(r"\d+", model.split("; ")[-1]).group())
    count = named if isinstance(named, int) else len(named) if named is not None else outputs
    if count not in ((0, 1, 2) if outputs == 1 else (outputs,)):
        raise UsageError(f"`classes` has {count} classes, and the last layer has {outputs} outputs",
                         remedy="give one class for each output, in their order")


# ---------------------------------------------------------------- an item of the kind

class _Like:
    """A data set of one item, for its shape and its classes."""

    def __init__(self, arrays, values):
        self._values = values  # its memory outlives the data set
        self.address = new("qn_data_lend", arrays)
        self._release = owned(self, "qn_data_close", self.address)


def _like(shape, resize, classes):
    import numpy as np

    values = np.zeros((1, int(np.prod(shape))), np.uint8)
    arrays = _abi.qn_data_arrays()
    library().qn_data_arrays_init(arrays)
    arrays.type, arrays.items, arrays.features = _abi.QN_U8, 1, values.size
    arrays.values = values.ctypes.data
    if resize:
        arrays.resize, arrays.rules = text(resize), b"orientation files"
    if classes == 0 and isinstance(classes, int):
        arrays.targets = (C.c_float * 1)(0.5)
    else:
        arrays.labels = (C.c_int32 * 1)(0)
    if isinstance(classes, list):
        arrays.class_name = (C.c_char_p * len(classes))(*map(text, classes))
        arrays.classes = len(classes)
    if classes:  # a ready model follows the greatest label
        arrays.labels[0] = arrays.classes - 1 if isinstance(classes, list) else classes - 1
    return _Like(arrays, values)


# ---------------------------------------------------------------- files of torch.save

def _state_file(path, until):
    """A safetensors file of the parameters: the one at `path`, or one that is removed afterwards."""
    if isinstance(path, Mapping):
        tensors, name = path, "the state dict"
    elif _is_torch(path):
        tensors, name = _torch_state(path), os.fspath(path)
    else:
        return path
    folder = until.enter_context(tempfile.TemporaryDirectory(prefix="quern-"))
    made = os.path.join(folder, "state.safetensors")
    _write_state(_parameters(tensors, name), name, made)
    return made


def _is_torch(path):
    """Whether a file is a zip archive or a pickle, as torch.save writes."""
    try:
        with open(path, "rb") as file:
            first = file.read(8)
    except OSError:
        return False  # the library says what is wrong
    return first.startswith(b"PK") or (first.startswith(b"\x80") and first[1:2] in b"\2\3\4\5")


def _torch_state(path):
    try:
        import torch
    except ImportError:
        raise UnsupportedError(f"{path} is a file of torch.save, and torch is not installed", remedy="install torch, or write "
                               "the parameters with safetensors.torch.save_file(net.state_dict(), path)") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a pickle that needs more, or a damaged file
        raise FormatError("torch does not read this file with weights_only=True, which runs no code of the file: "
                          + _reason(error), str(path), _REMEDY) from None


def _reason(error):
    """The line of torch's message that names what the file needs; else the first one."""
    lines = re.sub("\x1b\\[[0-9;]*m", "", str(error)).split("\n")
    named = [line for line in lines if "GLOBAL" in line or "Unsupported" in line] or lines
    return named[0].strip()[:200] or type(error).__name__


def _is_tensor(value):
    return hasattr(value, "detach") and hasattr(value, "dtype")


def _parameters(content, name):
    """The state dict, perhaps one in a checkpoint of a training."""
    if isinstance(content, Mapping):
        for key in _WRAPPERS:
            if isinstance(content.get(key), Mapping):
                content = content[key]
                break
    if not isinstance(content, Mapping) or not content:
        raise FormatError("this is not a state dict: a mapping of names to tensors", name, _REMEDY)
    for key, value in content.items():
        if not isinstance(key, str) or not _is_tensor(value):
            raise FormatError(f"{key!r} of the state dict is not a tensor", name, _REMEDY)
    return content


def _write_state(tensors, name, path):
    """As safetensors.torch.save_file does."""
    import torch

    header, at, parts = {}, 0, []
    for key in sorted(tensors):
        tensor = tensors[key].detach()
        kind = _TYPES.get(str(tensor.dtype).replace("torch.", ""))
        if kind is None or not isinstance(tensor.shape, tuple):
            raise InputError(f"the tensor {key!r} has the type {tensor.dtype}", name, "convert it with .float()")
        try:
            part = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        except (RuntimeError, TypeError, NotImplementedError):
            raise InputError(f"the tensor {key!r} is not a dense one", name, "convert it with .to_dense()") from None
        header[key] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + part.size]}
        at += part.size
        parts.append(part)
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    with open(path, "wb") as file:
        file.write(len(words).to_bytes(8, "little") + words)
        for part in parts:
            file.write(part.data)
