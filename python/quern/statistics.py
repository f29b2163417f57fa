"""Statistics of the columns of a data set, as NumPy arrays."""

import ctypes as C

from . import _abi
from ._library import call, library, new, sized
from .ranks import _over_ranks

_NUMBERS = ("count", "missing", "sum", "mean", "variance", "deviation", "population_deviation",
            "skewness", "minimum", "maximum")
_ALL = 2**32 - 1  # QN_ALL_CLASSES


def describe(data, quantiles, by_class, correlation, histograms, bins, threads, devices=None):
    """The dict that Data.describe returns."""
    import numpy as np

    wanted = np.ascontiguousarray(quantiles, np.float64).ravel()
    options = _abi.qn_statistics_options()
    library().qn_statistics_options_init(options)
    options.threads, options.bins = threads, bins or 0
    options.by_class, options.correlation = int(by_class), int(correlation)
    options.histograms = int(histograms)
    options.quantiles = C.cast(wanted.ctypes.data, C.POINTER(C.c_double))
    options.quantile_count = len(wanted)
    _over_ranks(options, devices)
    made = new("qn_statistics_make", data._address, options)
    try:
        return _read(made, data, wanted, by_class, correlation, histograms)
    finally:
        library().qn_statistics_free(made)


def _read(made, data, wanted, by_class, correlation, histograms):
    columns = library().qn_statistics_columns(made)
    names = data.names or [None] * data.features
    names = [f"f{k}" if name is None else name for k, name in enumerate(names)]
    names += [data.label_name or "label"] * (columns - len(names))
    answer = {"names": names, "quantile": wanted.copy(),
              **_of_class(made, data, columns, wanted, _ALL)}
    if by_class:
        each = [_of_class(made, data, columns, wanted, c) for c in range(data.classes)]
        answer["by_class"] = {key: _stack([one[key] for one in each]) for key in each[0]}
    if correlation:
        for name in ("covariance", "correlation"):
            answer[name] = _copy(getattr(library(), f"qn_statistics_{name}")(made),
                                 columns * columns).reshape(columns, columns)
    if histograms:
        groups = range(data.classes) if by_class else ()
        answer["histograms"] = [_histogram(made, k, _ALL) for k in range(columns)]
        for c in groups:
            answer["by_class"].setdefault("histograms", []).append(
                [_histogram(made, k, c) for k in range(columns)])
    return answer


def _stack(arrays):
    import numpy as np

    return arrays if isinstance(arrays[0], list) else np.stack(arrays)


def _of_class(made, data, columns, wanted, class_index):
    import numpy as np

    rows = []
    for column in range(columns):
        row = sized(_abi.qn_column_statistics)
        call("qn_statistics_column", made, column, class_index, row)
        rows.append(row)
    answer = {name: np.array([getattr(row, name) for row in rows],
                             np.uint64 if name in ("count", "missing") else np.float64)
              for name in _NUMBERS}
    answer["quantiles"] = np.array(
        [_copy(library().qn_statistics_quantiles(made, k, class_index), len(wanted))
         for k in range(columns)]).reshape(columns, len(wanted))
    counts = [library().qn_data_categories(data._address, k) for k in range(data.features)]
    answer["categories"] = [
        _copy(library().qn_statistics_categories(made, k, class_index), n, np.uint64) if n else None
        for k, n in enumerate(counts + [0] * (columns - data.features))]
    answer["dates"] = [_dates(made, data, k, len(wanted), class_index) for k in range(columns)]
    return answer


def _dates(made, data, column, quantiles, class_index):
    """What the numbers of a column of dates stand for; None of other columns."""
    import numpy as np

    if column >= data.features or not library().qn_data_dates(data._address, column, None, 0):
        return None
    room = C.create_string_buffer(40)

    def date(which, index=0):
        library().qn_statistics_date(made, column, class_index, which, index, room, len(room))
        return np.datetime64(room.value.decode().rstrip("Z") or "NaT", "us")

    ends = {"mean": _abi.QN_STATISTIC_MEAN, "minimum": _abi.QN_STATISTIC_MINIMUM,
            "maximum": _abi.QN_STATISTIC_MAXIMUM}
    found = {name: date(which) for name, which in ends.items()}
    found["quantiles"] = np.array([date(_abi.QN_STATISTIC_QUANTILE, i) for i in range(quantiles)],
                                  "datetime64[us]")
    return found


def _histogram(made, column, class_index):
    """(counts, edges), or None."""
    import numpy as np

    bins = C.c_uint32()
    edges = library().qn_statistics_edges(made, column, bins)
    if not edges:
        return None
    counts = library().qn_statistics_histogram(made, column, class_index)
    return _copy(counts, bins.value, np.uint64), _copy(edges, bins.value + 1)


def _copy(pointer, count, kind=None):
    """A copy of an array of the library; NaN for NULL."""
    import numpy as np

    if not pointer:
        return np.full(count, np.nan)
    if count == 0:
        return np.empty(0, kind or np.float64)
    return np.ctypeslib.as_array(pointer, (count,)).astype(kind or np.float64)


def frame(answer):
    """The numbers of all items as a DataFrame of pandas, a row for each column of the data."""
    import pandas

    made = pandas.DataFrame({name: answer[name] for name in _NUMBERS}, index=answer["names"])
    for k, q in enumerate(answer["quantile"]):
        made[f"{100 * q:.6g}%"] = answer["quantiles"][:, k]
    for row, dates in enumerate(answer["dates"]):
        if dates is None:
            continue
        told = {**{name: dates[name] for name in ("mean", "minimum", "maximum")},
                **{f"{100 * q:.6g}%": dates["quantiles"][k] for k, q in enumerate(answer["quantile"])}}
        for name, value in told.items():
            column = made.columns.get_loc(name)
            made.isetitem(column, made.iloc[:, column].astype(object))
            made.iat[row, column] = pandas.Timestamp(value)
    return made
