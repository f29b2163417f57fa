"""What a user gives as values or labels, as arrays for the library."""

import decimal
from typing import NamedTuple, Optional

import numpy as np

from . import _abi
from ._arrow import COMPLEX_REMEDY, is_missing, need_texts, text_of
from .errors import InputError, OutOfMemory, UsageError

# What holds memory that NumPy can read in place, by DLPack's numbers: CPU, and pinned or managed
# memory of a GPU.
_HOST = (1, 3, 11, 13)
_from_dlpack = getattr(np, "from_dlpack", None)  # since NumPy 1.23; tensors are arrays before, too
_DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}


class Table(NamedTuple):
    """Values as the library stores them, and what their columns are."""

    values: np.ndarray  # items x features, uint8, uint16 or uint32 (tokens) in C order, or float32 or
    # float64; NaN: missing
    names: Optional[list]  # of the columns, or None
    categories: Optional[list]  # of each column: None, or its texts; None: all are numbers
    bytes: Optional[list] = None  # of each column of float32: whether it holds whole numbers from 0
    # to 255 alone; None: not known
    rules: str = ""  # of reading that changed something, as a recipe names them
    exact: Optional[dict] = None  # of columns that float32 may not hold: arrays of int64 or float64
    expected: Optional[str] = None  # qn_data_arrays.expected_rules
    dates: Optional[list] = None  # of each column what Data.dates has
    date_format: Optional[str] = None
    texts: Optional[list] = None  # of each column whether a network gets its words; None: not known
    text_features: Optional[str] = None  # what it gets of them; None: words and pairs


def array_of(given, where="X"):
    """The array of NumPy, over the same memory where that is possible."""
    if isinstance(given, np.ma.MaskedArray):
        return unmasked(given)
    arrow = hasattr(given, "__arrow_c_array__")  # DLPack has neither texts nor gaps
    tensor = hasattr(given, "__dlpack__") and not arrow and _from_dlpack is not None
    if isinstance(given, np.ndarray) or not tensor:
        plain = hasattr(given, "__array__") or not hasattr(given, "to_numpy")
        return np.asarray(given if plain else given.to_numpy())
    device, number = given.__dlpack_device__()
    if device not in _HOST:
        kind = _DEVICES.get(int(device), f"of DLPack's kind {int(device)}")
        raise InputError(f"the values are in the memory of a device ({kind}, number {number})", where,
                         "copy them to the CPU first, such as with .cpu()")
    try:
        return _from_dlpack(given)
    except (BufferError, RuntimeError, TypeError) as failure:
        raise InputError(f"the memory cannot be read: {failure}", where,
                         "give a plain float32 array, such as by .detach().float()") from None


def unmasked(given):
    """A masked array as one that has NaN or None where a value is masked."""
    if not np.ma.is_masked(given):
        return given.data
    if given.dtype.kind in "biu":
        given = given.astype(np.float64)
    if given.dtype.kind in "fc":
        return given.filled(np.nan)
    if given.dtype.kind in "Mm":
        return given.filled(np.array("NaT", given.dtype))
    return np.where(np.ma.getmaskarray(given), None, given.data.astype(object))


def values_of(given, row=False):
    """The array of a table: items x features, of any type of numbers, of dates or of objects."""
    if hasattr(given, "tocsr"):
        return dense(given)
    values = array_of(given)
    if values.ndim > 2:  # pictures
        values = values.reshape(len(values), int(np.prod(values.shape[1:])))
    if values.ndim == 0:
        kind = type(given).__name__
        remedy = "give an array, a DataFrame or an Arrow table of items x features"
        raise InputError(f"the values are not a table, but of the type {kind}", "X", remedy)
    if values.ndim == 1 and row:  # of tokens
        return values
    if values.ndim != 2:
        raise InputError(f"a table has two dimensions, and this has {values.ndim}", "X",
                         "use .reshape(-1, 1) for one column, .reshape(1, -1) for one item")
    if values.dtype.kind == "c":
        raise InputError("complex numbers cannot be read", "X", COMPLEX_REMEDY)
    return values


def image_of(given):
    """(channels, rows, columns) of the items of an array of three or four dimensions, or None."""
    shape = getattr(given, "shape", None)
    if shape is None and isinstance(given, (list, tuple)) and len(given):
        shape = (len(given), *getattr(given[0], "shape", ()))
    if shape is None or len(shape) not in (3, 4) or 0 in shape:
        return None
    return (*(1,) * (4 - len(shape)), *(int(side) for side in shape[1:]))


def table_of(values, names=None):
    """The table of an array of numbers: its own memory where that has the right form.

    Whole numbers from 0 to 255 become uint8, as in a CSV file, all others float32. The library copies
    floats of 32 and 64 bits itself, from whatever order they lie in.
    """
    size = values.dtype.itemsize
    if values.dtype.kind == "f" and size in (4, 8) and values.dtype.isnative and values.flags.aligned and all(
            step > 0 and step % size == 0 for step in values.strides):
        return Table(values, names, None)
    if values.dtype.kind == "f" and size == 8:
        return Table(np.ascontiguousarray(values, np.float64), names, None)
    return Table(np.ascontiguousarray(numbers(values)), names, None, exact=exact_of(values))


def exact_of(values):
    """Columns of whole numbers that float32 does not hold, as arrays of int64; they hold no number from 2^63."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 4 or not values.size or (
            values.min() >= -2**24 and values.max() <= 2**24):
        return None
    columns = range(values.shape[1])
    return {k: values[:, k].astype(np.int64) for k in columns if values[:, k].max() < 2**63} or None


# Of the library, for the element types that are not floats.
TYPES = {"uint8": _abi.QN_U8, "uint16": _abi.QN_TOKENS16, "uint32": _abi.QN_TOKENS32}


def are_integers(given):
    """Whether a user gave an array of integers."""
    try:
        return array_of(given).dtype.kind in "iu"
    except (InputError, TypeError, ValueError):
        return False


def tokenises(columns):
    """Whether a column of texts becomes tokens, by a tokenizer that the options name or that of a model."""
    given = columns.get("tokens")
    return given != "ids" if given else bool(columns.get("expected_tokenizer")) and not columns.get("expected_context")


def as_trained(values, columns, is_stream):
    """The options of an array or a table that is read as the data of a model was."""
    columns = dict(columns)
    if is_stream and tokenises(columns):
        return columns
    tokens, context = columns.pop("expected_tokens", None), columns.pop("expected_context", None)
    columns.pop("expected_tokenizer", None)  # of texts alone
    columns.pop("expected_features", None)
    if tokens and not is_stream and are_integers(values):
        columns.setdefault("tokens", "ids")
        if context and np.ndim(values) == 1:
            columns.setdefault("context", context)
    return columns


def tokens_of(values, how, context=None):
    """The array as uint16 where its elements have at most 16 bits, else as uint32."""
    if how != "ids":
        raise UsageError(f"{how!r} does not say how tokens are made", "", "tokens is \"ids\", for arrays of them")
    if values.dtype.kind not in "iu":
        raise InputError(f"an array of {values.dtype} does not hold integers, and tokens are such", "X",
                         "give items x positions of uint16 or uint32")
    if values.size and (values.min() < 0 or values.max() >= 2**32):
        wrong = values[(values < 0) | (values >= 2**32)][0]
        raise InputError(f"{wrong} is not the number of a token", "X", "tokens are whole numbers from 0 to 4294967295")
    values = np.ascontiguousarray(values, np.uint16 if values.dtype.itemsize <= 2 else np.uint32)
    if values.ndim == 1 and not context:
        raise UsageError(f"the array is one row of {len(values)} tokens", "X",
                         "say with context how many an item has, such as 256")
    if values.ndim > 1 and context:
        raise UsageError("the array has items, and a context cuts one row of tokens", "X", "leave it out")
    return items_of(values, context) if context else values


def items_of(tokens, context):
    """A view of one row of tokens: each item begins with the last token of the one before it."""
    items = (len(tokens) - 1) // context if context > 0 else 0
    if items < 1:
        raise InputError(f"the context is {context}, and there are {len(tokens)} tokens", "X",
                         "give a smaller context, or a longer text")
    size = tokens.itemsize
    return np.lib.stride_tricks.as_strided(tokens, (items, context + 1), (context * size, size), writeable=False)


def numbers(values):
    """The array as uint8 or float32."""
    kind = values.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(np.float32, copy=False)
    small = kind == "b" or not values.size or (values.min() >= 0 and values.max() <= 255)
    return values.astype(np.uint8 if small else np.float32, copy=False)


# ------------------------------------------------------------------------------------- sparse

# Bytes of a block of items on their way to dense values.
_BLOCK = 1 << 22


# Where Linux says how much memory a container may use; "max" or a huge number: no limit.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory():
    """Bytes that can be allocated, or None where the system does not say."""
    found = []
    try:
        with open("/proc/meminfo") as lines:
            found += [1024 * int(line.split()[1]) for line in lines
                      if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        pass
    for path in _LIMITS:
        try:
            with open(path) as file:
                found.append(int(file.read()))
        except (OSError, ValueError):
            pass
    return min(found, default=None)


def dense(given):
    """A sparse matrix of SciPy as float32 in C order.

    Raises
    ------
    OutOfMemory
        The dense values need more memory than there is.
    """
    if given.ndim != 2:
        raise InputError(f"a table has two dimensions, and this has {given.ndim}", "X")
    if given.dtype.kind == "c":
        raise InputError("complex numbers cannot be read", "X", COMPLEX_REMEDY)
    items, features = given.shape
    needed, there = 4 * items * features, available_memory()
    if there is not None and needed > there:
        raise OutOfMemory(f"the sparse table of {items} x {features} values needs "
                          f"{needed / 2**30:.1f} GiB as float32, and {there / 2**30:.1f} GiB are "
                          "available", "X", "choose fewer features, such as with TruncatedSVD or "
                          "SelectKBest, or fewer items")
    rows = given.tocsr()
    if not rows.has_canonical_format:  # values of one place are added before they are rounded
        rows = rows.copy()
        rows.sum_duplicates()
    values = np.empty((items, features), np.float32)
    step = max(1, _BLOCK // max(1, 4 * features))
    with np.errstate(over="ignore"):
        for first in range(0, items, step):
            block = rows[first:first + step].astype(np.float32)
            block.toarray(out=values[first:first + step])
    return values


# ------------------------------------------------------------------------------------- labels

def text_classes(values):
    """Indices of texts among the different ones, which ascend bytewise."""
    texts = sorted(set(values), key=lambda text: text.encode("utf-8", "surrogateescape"))
    place = {text: i for i, text in enumerate(texts)}
    return np.array([place[value] for value in values], np.int32), texts


def plain(values):
    """An array of objects as one of numbers, where all are: pandas has these for columns that may
    have gaps."""
    if any(isinstance(value, (str, bytes)) or is_missing(value) for value in values.flat):
        return values
    found = np.array(values.tolist())
    return found if found.dtype.kind in "iuf" else values


def labels_of(values, items, task):
    """Whole labels or indices as int32, or real labels as float32; and the names of classes or None.

    What whole numbers mean, the library decides, as for a file.
    """
    values = array_of(values, "y")
    if values.dtype == object:
        values = plain(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError("labels have one dimension", "y")
    if len(values) != items:
        raise InputError(f"there are {len(values)} labels for {items} items", "y")
    if values.dtype.kind in "iuf":
        return number_labels(values, task), None
    if any(is_missing(value) for value in values):
        raise InputError("a label is missing", "y")
    if task == "regress" and all(isinstance(value, decimal.Decimal) for value in values):
        return number_labels(values.astype(np.float64), task), None
    if task == "regress":
        raise InputError("the labels are texts, and regression needs numbers", "y")
    need_texts(values, "y")
    return text_classes([text_of(value) for value in values])


def several_of(values, items):
    """Several targets of each item as uint8, items x labels or items x rows x columns; None where each
    item has one."""
    values = array_of(values, "y")
    if values.ndim < 2 or (values.ndim == 2 and values.shape[1] == 1):
        return None
    if values.ndim > 3 or 0 in values.shape:
        raise InputError(f"labels have one, two or three dimensions, and these {values.ndim}", "y",
                         "give items x labels, each 0 or 1, or the classes of pixels, items x rows x "
                         "columns")
    if values.dtype == object:
        values = plain(values)
    if values.dtype.kind not in "biuf" or len(values) != items:
        raise InputError(f"labels of the type {values.dtype} and the shape {values.shape} do not fit "
                         f"{items} items", "y", "give whole numbers, as many rows as there are items")
    if not ((values >= 0) & (values <= 255) & (values == np.floor(values))).all():
        raise InputError("a label is not a whole number from 0 to 255", "y",
                         "classes count from 0; 255 says that a pixel or a label does not count")
    return np.ascontiguousarray(values.astype(np.uint8))


def any_labels_of(labels, classes, items, task):
    """(labels, names of classes or None, task) of what a user gives as labels."""
    several = several_of(labels, items)
    if several is None and classes is None:
        return *labels_of(labels, items, task), task or "auto"
    if several is not None:
        from . import _arrow

        names = _arrow.column_names(labels) if classes is None and _arrow.is_table(labels) else classes
        if names is not None and (several.ndim > 2 or len(names) != several.shape[1]):
            raise InputError(f"there are {len(names)} names for labels of the shape {several.shape[1:]}",
                             "classes", "give a name for each of several labels, and none for masks")
        return several, names, None
    return indices_of(labels, items), classes, task


def weights_of(given, items):
    weights = array_of(given, "weights")
    if weights.shape != (items,):
        raise InputError(f"there are {items} items, and weights of the shape {weights.shape}", "weights",
                         "give one weight for each item")
    return weights


def indices_of(labels, items):
    """Labels that are indices into the names of classes, as int32."""
    labels = array_of(labels, "y")
    labels = labels.astype(np.int32) if labels.dtype.kind == "b" else labels
    labels, names = labels_of(labels, items, "classify")
    if names is not None:
        raise InputError("with names of classes, labels are indices into them, and these are texts",
                         "y", "give the texts without the names of classes, or numbers from 0")
    return labels


def number_labels(values, task):
    if not np.isfinite(values).all():
        raise InputError("a label is not a finite number", "y")
    whole = values.dtype.kind != "f" or (values == np.floor(values)).all()
    if task == "regress" or (not whole and task != "classify"):
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    if not whole:
        raise InputError("a label is not a whole number", "y", "task='regress' takes all numbers")
    if len(values) and not -2**31 < values.min() <= values.max() < 2**31:
        raise InputError("a label is beyond 32 bits", "y", "classes with such numbers must be texts, as "
                         "y.astype(str) makes them; for quantities set task='regress'")
    return values.astype(np.int32)
