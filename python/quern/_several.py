"""Several targets for each item: labels, or classes of pixels."""

import ctypes as C

from . import _abi
from ._library import call, sized


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
