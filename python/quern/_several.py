"""Several targets for each item: labels, or classes of pixels."""

import csv
import ctypes as C

from . import _abi
from ._library import call, library, sized
from .errors import UsageError


def lend(arrays, labels):
    """Gives the library items x labels, or items x rows x columns, of uint8 in C order."""
    arrays.several = C.cast(labels.ctypes.data, C.POINTER(C.c_uint8))
    arrays.each = labels[0].size
    if labels.ndim == 3:
        arrays.mask_rows, arrays.mask_columns = labels.shape[1:]


def targets(data, view):
    """Those of a data set, as `view` makes an array of an address; None where an item has one label."""
    found = sized(_abi.qn_several)
    call("qn_data_several", data._address, found)
    shape = (found.rows, found.columns) if found.rows else (found.each,)
    address = C.cast(found.target, C.c_void_p).value
    return view(data, address, (data.items, *shape), "|u1") if address else None


def about(data):
    """What repr says of them."""
    several = data.several
    if several is None:
        return ""
    return f", masks with {data.classes} classes" if several.ndim == 3 else f", {several.shape[1]} labels each"


def _column(values, given, word):
    """The column of a table that is meant by a name, or by a number from 1, as a text."""
    from . import _arrow

    if not isinstance(given, str) and _arrow.has_column(values, given):
        change = "set_axis(map(str, table.columns), axis=1)" if isinstance(given, tuple) else "rename(columns=str)"
        raise UsageError(f"{word}={given!r} is the name of a column, and a number counts from 1", "",
                         f"make the names texts, such as by table.{change}")
    return str(given)


def column_text(values, given, word):
    """The same, or of a list of columns the text that names them all. `values` may be None: a file."""
    if not isinstance(given, list):
        return _column(values, given, word)
    if not given:
        raise UsageError(f"the list of {word} is empty", "", "name one column or more, or leave it out")
    texts = [_column(values, one, word) for one in given]
    return texts[0] if len(texts) == 1 else ",".join('"%s"' % one.replace('"', '""') for one in texts)


def has_columns(values, name):
    """Whether a table has the column that a model names, or all of its several labels."""
    from . import _arrow

    if _arrow.has_column(values, name) or not isinstance(name, str) or "," not in name:
        return _arrow.has_column(values, name)
    return all(_arrow.has_column(values, one) for one in next(csv.reader([name])))


def labels(data):
    """How many labels an item has, where it has several; else 0."""
    several = data.several
    return several.shape[1] if several is not None and several.ndim == 2 else 0


def _tags(gaps, classes, names):
    """The tags of the words of one item; -100 stands for a word without a token."""
    import numpy as np

    told, last = [], len(gaps) - 1
    for at in np.flatnonzero(gaps):
        told += ["-100"] * (int(gaps[at]) - (at < last))
        if at < last:
            told.append(names[classes[at]] if names else str(classes[at]))
    return told


def words(data, found, names):
    """Of texts whose words have tags a list of these for each item; None: the data are others."""
    import numpy as np

    count, told = C.c_uint32(), []
    for item, classes in enumerate(found.reshape(len(found), -1)):
        gaps = library().qn_data_item_words(data._address, item, count)
        if count.value != classes.size + 1:
            return None
        told.append(_tags(np.ctypeslib.as_array(gaps, (count.value,)), classes, names))
    return told


def originals(data, masks, outputs):
    """Masks of images, each in the size that its image had before it was resized."""
    import numpy as np

    if outputs or masks.ndim != 3:
        raise UsageError("original_size is for classes of pixels", "", "leave out outputs, or original_size")
    made = []
    for item, mask in enumerate(masks):
        rows, columns = C.c_uint32(), C.c_uint32()
        library().qn_data_original_size(data._address, item, rows, columns)
        if not rows.value:
            raise UsageError("the items are not images that have a size", "", "leave original_size out")
        to = np.empty((rows.value, columns.value), np.uint8)
        into, pixels = (C.cast(array.ctypes.data, C.POINTER(C.c_uint8)) for array in (to, mask))
        call("qn_data_original_mask", data._address, item, pixels, *mask.shape, into)
        made.append(to)
    return made
