"""Kernels of your own: functions of an index in C, over arrays of NumPy."""

import collections.abc
import ctypes as C
import numbers
import operator
import os
import threading
from types import SimpleNamespace
from typing import NamedTuple, Optional

import numpy as np

from . import _abi, ranks
from ._library import assign, call, kinds_of, library, new, owned, said, sized, text
from .errors import InputError, QuernError, UsageError, of

_USES = {value: name[len("QN_KERNEL_"):].lower() for name, value in vars(_abi).items()
         if name.startswith("QN_KERNEL_") and name != "QN_KERNEL_DIMENSIONS"}
_READ = ("input", "halo", "whole")
_OPTIONS = [name for name, _ in _abi.qn_kernel_options._fields_ 
            if name not in ("size", "recipe", "compute", "user", "checkpoint_seconds", "checkpoint_iterations")]
_OPTIONS.append("checkpoint_every")


class Part(NamedTuple):
    """A declaration of a kernel."""

    name: str
    use: str  # "input", "whole", "halo", "output", "scalar", "sum", "min", "max", "count" ...
    dtype: str  # as NumPy calls it
    dimensions: int  # of an array
    reach: int  # of a halo
    default: Optional[str]  # of a scalar: its value as a text; None: it needs one
    next: Optional[str]  # of an array that NEXT pairs: the other one
    bins: int  # of a SUM, COUNT, MIN ... that is an array: its length; else 0
    components: int  # of an OUTPUT with several numbers an item: how many, its last length; else 0

    def __str__(self):
        more = "" if self.default is None else f", {self.default}"
        return f"{self.use.upper()}({self.dtype}, {self.name}{more})"


class Extreme(NamedTuple):
    """The result of MIN or MAX."""

    value: object  # int or float; None: no item gave a number
    item: Optional[tuple]  # the first item with it: ``array[item]``
    count: int  # of items that gave a number


class Results(collections.abc.Mapping):
    """The results of a run by name: ``r["steps"]``, and ``r.steps`` where no attribute has that name.

    Attributes
    ----------
    report : SimpleNamespace
        ``items``, ``shape``, ``seconds``, ``compile_seconds``, ``cached``, ``threads``, ``compiler``.
    series : dict
        The arrays of ``series``: one number an iteration.
    digests : dict
        The digest of each output or series that has a file, and with ``recipe`` of all.
    """

    def __init__(self, values, report, series, digests):
        self._values, self.report, self.series, self.digests = values, report, series, digests

    def __getitem__(self, name):
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __getattr__(self, name):
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        raise AttributeError(f"the kernel has no result {name!r}, only {', '.join(self._values)}")

    def __dir__(self):
        return [*super().__dir__(), *self._values]

    def __repr__(self):
        return f"Results({', '.join(f'{n}={_brief(v)}' for n, v in self._values.items())})"


def _brief(value):
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} {'x'.join(map(str, value.shape))}>"
    return repr(value)


class Kernel:
    """A kernel: a function of an index, written in C, that runs over arrays.

    The results are the same bytes with any number of cores, any compiler and any processor.
    docs/kernels.md describes the language.

    Parameters
    ----------
    path : str or path, optional
        The kernel's file.
    text : str, optional
        The kernel's text instead.
    name : str, optional
        What messages call a text.

    Attributes
    ----------
    parts : list of Part
        The declarations: ``name``, ``use``, ``dtype`` ...
    dimensions : int
        Of the index space.

    Raises
    ------
    InputError
        The text has an error; the message names line and column.

    Examples
    --------
    >>> import quern
    >>> k = quern.Kernel(text="INDEX(i); INPUT(double, x); SUM(double, all); KERNEL { all = x; }")
    >>> k.run(x=[1e100, 1.0, -1e100]).all
    1.0
    """

    def __init__(self, path=None, *, text=None, name="kernel.c"):
        if (path is None) == (text is None):
            raise UsageError("a kernel has a file or a text", "",
                             'write Kernel("file.c") or Kernel(text="...")')
        if path is not None and b"\n" in os.fsencode(path):
            raise UsageError("this is a kernel's text, not the path of its file", "", 'write Kernel(text="...")')
        self._allowed = ()
        self._source = ("qn_kernel_open", _text(path)) if text is None else \
            ("qn_kernel_read", _text(text), _text(name))
        self._take(os.fsdecode(path) if text is None else name)

    @classmethod
    def from_recipe(cls, path, allow_path=()):
        """The kernel of a recipe, with its scalars, its shape and the files of its inputs: for `replay`.

        Of the files that a recipe names, those below its own folder are opened, and those that
        ``allow_path`` has, a path or several: each is a file, or a folder of such files.
        """
        made = cls.__new__(cls)
        made._source = ("qn_kernel_from_recipe", _text(path))
        made._allowed = (allow_path,) if isinstance(allow_path, (str, bytes, os.PathLike)) else tuple(allow_path)
        made._take(os.fsdecode(path))
        return made

    def _take(self, name):
        self._name, self._lock = name, threading.Lock()
        self._open()
        address = self._address
        self.dimensions = library().qn_kernel_dimensions(address)
        self.parts = [_part(address, i) for i in range(library().qn_kernel_parts(address))]
        self._by_name = {part.name: part for part in self.parts}

    def _open(self):
        self._address = new(*self._source)
        self._release = owned(self, "qn_kernel_free", self._address)
        for path in self._allowed:
            call("qn_kernel_allow_path", self._address, _text(path))
        self._held = {}  # what the library has the address of
        self._series, self._seeded = (), False

    def __repr__(self):
        return f"<quern.Kernel {self._name}: {', '.join(map(str, self.parts))}>"

    def run(self, values=None, /, *, shape=None, seed=None, series=(), recipe=None, parts=(), **named):
        """Computes all items.

        Parameters
        ----------
        values : dict, optional
            Values by name, for names that are also those of an option.
        shape : int or tuple of int, optional
            Lengths of the index space. By default those of the arrays.
        seed : int, optional
            Of the random numbers of a kernel with RANDOM. Default: 1.
        series : list of str or dict, optional
            The sums, extremes and counts of which the number of every iteration is wanted; as a dict
            with the path of an NPY file for each, or None.
        recipe : str or path, optional
            File for the recipe, with which ``quern replay`` computes the results again.
        parts : list of str, optional
            Inputs of which each rank gives its own rows: an array, which may have no rows, or what
            ``--in-parts`` takes. The whole has the rows of rank 0, then those of rank 1, and so on.
            Each rank computes the items of its rows of the first of these that the kernel declares.
            Outputs that are arrays then have the rows of this rank; a path with ``%r``, the number of
            the rank, names a file for them, and one without a file for all rows.
        **named
            Of an input: an array, numbers in a list, one number for all items, or the path of an NPY
            file. An array of the declared type in C order is used where it is. Other types are
            converted where NumPy calls it safe. Arrays are broadcast to the index space.
            Of a scalar: a number. Of an output: an array to fill, or the path of a file to write.
            Others are options of ``quern run``: ``iterations``, ``threads``, ``devices``, ``checkpoint``
            and so on; and ``on_progress``, which is called with the progress at most ten times a
            second, and ``on_note``, with messages. An exception of these ends the run.

        Returns
        -------
        Results
            Outputs are arrays, sums and counts numbers, minima and maxima `Extreme`. An output that
            is written to an NPY file is mapped from there; of a picture it is the path.

        Raises
        ------
        UsageError
            A value is missing, or there is no such name.
        InputError
            An array does not fit.
        NumericError
            NaN in a result, an infinity in a sum, a division by zero, an index out of range; for the
            first such item.
        KeyboardInterrupt
            After Ctrl-C, when the items in progress are computed. A second Ctrl-C does not wait.
        """
        values, options = self._sort(values, named)
        with self._lock:
            self._want(series)
            self._seed(seed)
            given = self._bind_parts(values, shape, parts) if parts else self._bind(values, shape)
            self._compute("qn_kernel_run", options, recipe)
            return self._results(given)

    def replay(self, values=None, /, **named):
        """Runs the kernel of a recipe and compares all results with it.

        Parameters
        ----------
        values, **named
            Inputs that have another place than in the recipe, as for `run`; and options.

        Returns
        -------
        Results
            As of `run`, without the arrays of outputs.

        Raises
        ------
        DiffersError
            A result differs.
        MismatchError
            An input is not that of the recipe.
        """
        values, options = self._sort(values, named)
        with self._lock:
            for name, value in values.items():
                if self._by_name[name].use not in _READ:
                    raise UsageError(f"{name!r} is not an input, and the recipe has the rest", name,
                                     "leave it out")
                self._place(self._by_name[name], value if _is_path(value) else
                            _array(value, self._by_name[name]))
            self._compute("qn_kernel_replay", options, None)
            return self._results({part.name: None for part in self.parts if _is_written(part)})

    # ------------------------------------------------------------------ what is given

    def _sort(self, values, named):
        """Values of declarations, and options."""
        values, options = dict(values or {}), {}
        for name, value in named.items():
            if name in _OPTIONS:
                options[name] = value
            elif name in values:
                raise UsageError(f"{name!r} is given twice", name, "leave one of them out")
            else:
                values[name] = value
        for name in values:
            if name not in self._by_name or not _takes_value(self._by_name[name]):
                kind = "the result" if name in self._by_name else "no declaration or option"
                raise UsageError(f"{kind} {name!r} takes no value" if name in self._by_name else
                                 f"there is {kind} {name!r}", self._name,
                                 "the kernel has: " + ", ".join(
                                     p.name for p in self.parts if _takes_value(p)))
        return values, options

    def _want(self, series):
        """Asks for series. The library keeps those of earlier runs, so it gets a new kernel then."""
        if isinstance(series, str):
            series = [series]
        if self._series and self._series != tuple(series):
            self._release()
            self._open()
        for name in series:
            path = series[name] if isinstance(series, dict) else None
            call("qn_kernel_series", self._address, _text(name), None if path is None else _text(path))
        self._series = tuple(series)

    def _seed(self, seed):
        if seed is None and self._seeded:
            seed = 1
        if seed is not None:
            if not isinstance(seed, numbers.Integral) or not 0 <= seed < 2**64:
                raise UsageError(f"the seed cannot be {seed!r}", "seed", "give a whole number from 0 to 2**64 - 1")
            call("qn_kernel_set_seed", self._address, int(seed))
            self._seeded = seed != 1

    def _arrays(self, values):
        """Sets the scalars; returns the inputs."""
        arrays = {}
        for part in self.parts:
            if part.use == "scalar":
                self._set(part, values.get(part.name, part.default))
            if part.use not in _READ:
                continue
            if part.name not in values:
                raise UsageError(f"there is no array for {part.name!r}", f"{part} in {self._name}",
                                 f"add {part.name}=ARRAY")
            value = values[part.name]
            arrays[part.name] = value if _is_path(value) else _array(value, part)
        return arrays

    def _bind_parts(self, values, shape, parts):
        """As _bind, where each rank has some rows of the arrays that `parts` names."""
        parts = (parts,) if isinstance(parts, str) else tuple(parts)
        arrays, own = self._arrays(values), None
        for name in parts:
            if name not in arrays:
                raise UsageError(f"{name!r} is not an input of the kernel", "parts", "name inputs there")
        for name, value in arrays.items():
            self._place(self._by_name[name], value, name in parts)
            if name in parts and own is None and _has_space(self._by_name[name]):
                own = () if _is_path(value) else value.shape
        space = None if shape is None else self._space({}, {}, shape)
        if space is not None:
            call("qn_kernel_set_shape", self._address, (C.c_uint64 * len(space))(*space), len(space))
        outputs = {}
        for part in self.parts:
            if not _is_written(part):
                continue
            value = values.get(part.name)
            if value is None and not own and not part.bins:
                raise UsageError(f"the rows of the output {part.name!r} are not known before the run",
                                 f"{part} in {self._name}", f'name a file: {part.name}="{part.name}-%r.npy"')
            in_parts = not part.bins and ("%r" in os.fspath(value) if _is_path(value) else True)
            outputs[part.name] = self._output(part, value, _shape(part, own or None), in_parts)
        return outputs

    def _bind(self, values, shape):
        """Gives the library all that the run needs; returns the outputs."""
        arrays = self._arrays(values)
        space = self._space(arrays, {p.name: values[p.name] for p in self.parts
                                     if p.use == "output" and values.get(p.name) is not None}, shape)
        for name, value in arrays.items():
            part = self._by_name[name]
            if _has_space(part) and not _is_path(value) and space is not None:
                value = _spread(value, space, part)
            self._place(part, value)
        if space is not None:
            lengths = (C.c_uint64 * len(space))(*space)
            call("qn_kernel_set_shape", self._address, lengths, len(space))
        return {part.name: self._output(part, values.get(part.name), _shape(part, space))
                for part in self.parts if _is_written(part)}

    def _set(self, part, value):
        if value is None:
            raise UsageError(f"the scalar {part.name!r} has no value", f"{part} in {self._name}",
                             f"add {part.name}=NUMBER")
        call("qn_kernel_set", self._address, _text(part.name), _text(_number(value, part)))

    def _space(self, arrays, outputs, shape):
        """The shape of the index space; None: the library says what is missing."""
        if shape is not None:
            try:
                shape = tuple(operator.index(n) for n in (shape if hasattr(shape, "__iter__") else [shape]))
            except TypeError:  # int() would take 2.9 for 2, and "34" for two lengths
                raise UsageError(f"the shape cannot be {shape!r}", "shape",
                                 "give a whole number for each index, such as (600, 800)") from None
            if len(shape) != self.dimensions or min(shape) < 1:
                raise UsageError(f"the shape cannot be {shape}", "shape",
                                 f"the index space has {self.dimensions} dimension"
                                 f"{'s' * (self.dimensions > 1)}: give a length from 1 for each")
            return shape
        shapes = {}
        for name, value in {**arrays, **outputs}.items():
            if not _has_space(self._by_name[name]):
                continue
            if not _is_path(value):
                shapes[name] = np.shape(value)[:-1] if self._by_name[name].components else np.shape(value)
            elif name in arrays and os.path.exists(value):
                shapes[name] = _file_shape(value)
        known = [s for s in shapes.values() if s]
        if not known:
            return None
        try:
            space = np.broadcast_shapes(*known)
        except ValueError:
            said_ = ", ".join(f"{name} {s}" for name, s in shapes.items())
            raise InputError(f"the shapes of the arrays do not fit: {said_}", self._name,
                             "arrays of the index space have one shape, or broadcast to it") from None
        return space if len(space) == self.dimensions else (1,) * (self.dimensions - len(space)) + space

    def _output(self, part, value, space, in_parts=False):
        """Where an output goes: a path, or an array."""
        if _is_path(value):
            self._place(part, value, in_parts)
            value = os.fspath(value)
            return value.replace("%r", str(ranks.index())) if in_parts else value
        if value is None:
            if space is None:
                raise UsageError("the shape of the index space is not known", self._name,
                                 "add shape=" + ("1000000", "(600, 800)", "(64, 64, 64)")[self.dimensions - 1])
            value = _new_array(space, part)
        elif not isinstance(value, np.ndarray):
            raise InputError("an output is an array of NumPy or a path", part.name,
                             "leave it out, or give an array to fill")
        elif value.dtype != part.dtype or not value.flags.c_contiguous or not value.flags.writeable \
                or not value.flags.aligned or not value.dtype.isnative:
            raise InputError(f"the array for the output {part.name!r} is {_kind(value)}", part.name,
                             f"give one such as numpy.empty(shape, {part.dtype!r}), or leave it out")
        self._place(part, value, in_parts)
        return value

    def _place(self, part, value, in_parts=False):
        """Binds an array or a file; `in_parts`: of it each rank has some rows."""
        name = _text(part.name)
        if _is_path(value):
            call("qn_kernel_bind_parts" if in_parts else "qn_kernel_bind_file", self._address, name, _text(value))
        else:
            shape = (C.c_uint64 * max(1, value.ndim))(*value.shape)
            call("qn_kernel_bind_part" if in_parts else "qn_kernel_bind", self._address, name, value.ctypes.data, shape,
                 value.ndim)
        self._held[part.name] = value

    # ------------------------------------------------------------------ the run

    def _compute(self, function, options, recipe):
        o, kept, failures = _abi.qn_kernel_options(), [], []
        library().qn_kernel_options_init(o)
        for name, value in {**options, "recipe": recipe}.items():
            if value is None:
                continue
            try:
                kept.append(_option(o, name, self._guarded(value, failures) if callable(value) else value))
            except (TypeError, ValueError, OverflowError) as failure:
                if isinstance(failure, QuernError):
                    raise
                raise UsageError(f"{name} cannot be {value!r}", name,
                                 "see quern run --help") from None
        cluster = ranks.current()
        if cluster:
            compute = sized(_abi.qn_compute)
            compute.cluster = cluster
            o.compute = C.pointer(compute)
            kept.append(compute)
        error, ended, done = _abi.qn_error(), [], threading.Event()

        def work():
            ended.append(getattr(library(), function)(self._address, o, error))
            done.set()

        # On a thread of its own, so that Python hears Ctrl-C on this one.
        threading.Thread(target=work, name="quern", daemon=True).start()
        self._wait(done, (kept, dict(self._held)))
        if failures:
            raise failures[0]
        if ended[0]:
            raise of(error)

    def _guarded(self, call, failures):
        """A callback whose exception ends the run, and is raised after it."""
        def guarded(value):
            try:
                call(value)
            except BaseException as failure:
                failures.append(failure)
                library().qn_kernel_stop(self._address)
        return guarded

    def _wait(self, done, held):
        """Waits for an event: after an interrupted join, threads of Python 3.11 that run count as ended."""
        failure = None
        while not done.is_set():
            try:
                # A stop before the library begins is not heard, so it is repeated.
                done.wait(0.05 if failure else None)
                if failure and not done.is_set():
                    library().qn_kernel_stop(self._address)
            except BaseException as raised:
                if failure:  # an item may never end: its memory stays
                    self._release.detach()
                    _abandoned.append((self, held))
                    raise
                failure = raised
                library().qn_kernel_stop(self._address)
        if failure:
            raise failure

    def _results(self, outputs):
        report = sized(_abi.qn_kernel_report)
        call("qn_kernel_report_get", self._address, report)
        shape = tuple(report.shape[:report.dimensions])
        values, series, digests = {}, {}, {}
        for part in self.parts:
            if part.use in (*_READ, "scalar"):
                continue
            r = sized(_abi.qn_kernel_result)
            call("qn_kernel_result_get", self._address, _text(part.name), r)
            if said(r.digest):
                digests[part.name] = said(r.digest)
            if part.name in self._series:
                series[part.name] = _numbers(r.series, said(r.series_type), report.iterations)
            if not _is_written(part):
                values[part.name] = _value(part, r, self.dimensions)
            elif isinstance(outputs[part.name], str):
                values[part.name] = _mapped(outputs[part.name], part, _shape(part, shape))
            elif outputs[part.name] is not None:
                values[part.name] = outputs[part.name]
        named = {name: getattr(report, name) for name, _ in report._fields_ if name not in ("size", "dimensions")}
        named.update(shape=shape, cached=bool(report.cached))
        named = {name: said(value) if isinstance(value, bytes) else value for name, value in named.items()}
        return Results(values, SimpleNamespace(**named), series, digests)


# Kernels whose run was left by a second Ctrl-C: the thread still uses them.
_abandoned = []


def _text(value):
    return text(value if isinstance(value, str) else os.fspath(value))


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _part(address, index):
    p = sized(_abi.qn_kernel_part)
    call("qn_kernel_part_get", address, index, p)
    return Part(said(p.name), _USES[p.use], said(p.type), p.dimensions, p.reach, said(p.text), said(p.next),
                p.bins, p.components)


def _is_written(part):
    """Whether the run writes an array."""
    return part.use == "output" or part.bins > 0


def _shape(part, space):
    """Of the array that the run writes; None: the index space is not known."""
    if part.bins:
        return (part.bins,)
    return (*space, part.components) if part.components and space is not None else space


def _takes_value(part):
    return part.use in (*_READ, "scalar") or _is_written(part)


def _has_space(part):
    """Whether an array has the shape of the index space."""
    return part.use != "whole" or part.next is not None


def _numbers(address, kind, count):
    """A copy of numbers of the library."""
    size = np.dtype(kind).itemsize * count
    return np.frombuffer(bytearray(C.string_at(address, size)), kind)


def _option(struct, name, value):
    if name == "checkpoint_every":
        from ._options import _UNITS

        if isinstance(value, str) and value[-1:] in _UNITS:
            return assign(struct, "checkpoint_seconds", float(value[:-1]) * _UNITS[value[-1]])
        return assign(struct, "checkpoint_iterations", int(value) if isinstance(value, str) else value)
    if name in ("on_note", "on_progress"):
        def told(_, news):
            if name == "on_note":
                value(said(news))
                return
            told_ = news.contents
            value(SimpleNamespace(**{n: getattr(told_, n) for n, _ in told_._fields_ if n != "size"}))

        made = kinds_of(_abi.qn_kernel_options)[name](told)
        setattr(struct, name, made)
        return made
    if name not in kinds_of(_abi.qn_kernel_options):
        raise TypeError(name)
    return assign(struct, name, os.fspath(value) if isinstance(value, os.PathLike) else value)


def _number(value, part):
    """A scalar as the text that the library reads as the same number."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or isinstance(value, numbers.Integral):
        return str(int(value))
    if not isinstance(value, numbers.Real):
        raise InputError(f"{value!r} is not a number", part.name, "give an int or a float")
    if part.dtype == "float32":  # once to float32, as NumPy rounds
        with np.errstate(over="ignore"):
            value = np.float32(value)
    return repr(float(value))


def _kind(array):
    order = "" if array.flags.c_contiguous else ", not in C order"
    places = "" if array.flags.aligned else ", not aligned to its numbers"
    return f"{array.dtype}{order}{places}{'' if array.flags.writeable else ', read-only'}"


def _array(value, part):
    """An input as an array of the declared type, in C order; the same memory where that fits."""
    from ._arrays import array_of

    plain = not hasattr(value, "dtype") and not hasattr(value, "__dlpack__")
    array = array_of(value, part.name)
    want = np.dtype(part.dtype)
    if array.dtype.kind not in "biuf":
        raise InputError(f"the array for {part.name!r} is of the type {array.dtype}, and not of numbers",
                         part.name, f"give numbers of the type {part.dtype}")
    fits = array.dtype == want or np.can_cast(array.dtype, want, "safe")
    if not fits and plain:  # numbers of Python have no type of their own
        fits = want.kind == "f" or (array.dtype.kind in "biu" and _within(array, want))
    if not fits:
        raise InputError(f"the array for {part.name!r} is {array.dtype}, and the kernel declares {part.dtype}",
                         f"{part}", f"give array.astype({part.dtype!r}), or change the declaration")
    with np.errstate(over="ignore"):
        made = np.asarray(array, want, order="C")
    if not made.flags.aligned:
        made = made.copy()
    if part.use == "whole" and made.ndim != part.dimensions:
        raise InputError(f"the array for {part.name!r} has {made.ndim} dimensions, and the kernel declares "
                         f"{part.dimensions}", f"{part}", "reshape it")
    return made


def _within(array, want):
    limits = np.iinfo(want)
    return not array.size or limits.min <= int(array.min()) <= int(array.max()) <= limits.max


def _spread(array, space, part):
    if array.shape == space:
        return array
    try:
        wide = np.broadcast_to(array, space)
    except ValueError:
        raise InputError(f"the array for {part.name!r} has the shape {array.shape}, and the index space {space}",
                         f"{part}", "give an array of that shape, or one that broadcasts to it") from None
    return np.ascontiguousarray(wide)


def _new_array(space, part):
    try:
        return np.empty(space, part.dtype)
    except (MemoryError, ValueError):
        from .errors import OutOfMemory

        raise OutOfMemory(f"there is no memory for the output {part.name!r} of the shape {space}", f"{part}",
                          f'write it to a file: {part.name}="{part.name}.npy"') from None


def _file_shape(path):
    """The shape in the header of an NPY file; () where there is none: the library says why."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False).shape
    except Exception:
        return ()


def _value(part, result, dimensions):
    value = said(result.value)
    if value is not None:
        value = float(np.float32(value)) if part.dtype == "float32" else \
            float(value) if part.dtype == "float64" else int(value)
    if part.use in ("min", "max"):
        item = None if value is None else tuple(result.item[:dimensions])
        return Extreme(value, item, result.count)
    return value


def _mapped(path, part, shape):
    """What was written: a view of the file, or of a picture its path."""
    if path.lower().endswith(".png") or not os.path.isfile(path):
        return path
    if path.lower().endswith(".raw"):
        return np.memmap(path, np.dtype(part.dtype).newbyteorder("<"), "r", shape=shape)
    return np.load(path, mmap_mode="r")
