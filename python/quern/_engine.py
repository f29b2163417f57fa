"""What Dask, Ray and Spark have in common: a rank in a process of its own, beside each worker.

The driver deals partitions to workers, makes a `Task` for each, and has every worker call `run`. That
starts a child, which is the rank (_rank.py). So the rank takes its memory with it when it ends, its
death is not that of the worker, and a worker that dies takes its rank along: the child ends with the
pipe from its parent.
"""

import os
import pickle
import re
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple, Optional

from . import ranks
from .errors import ClusterError, FileError, UnsupportedError, UsageError

# Before each message between a worker and its rank: its length.
LENGTH = struct.Struct("<Q")
# Seconds for which a driver waits for the other ranks when one has the result. Engines may take minutes
# until they notice that a machine is gone.
GRACE = 30
# Seconds for which a rank that is started again waits to be let in by the others.
DOOR = 30
_CODE = "import sys; sys.path = [sys.argv[1]] + [p for p in sys.path if p]; from quern import _rank; _rank.main()"


class Lost(ClusterError):
    """The process of a rank was ended from outside, or its worker was."""


class Part(NamedTuple):
    """The rows of a rank, in files of its worker. Without files it has no rows."""

    folder: Optional[str] = None
    table: Optional[str] = None  # an Arrow file
    arrays: Optional[str] = None  # pickled: values, labels, weights
    rows: int = 0

    def remove(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


class Task(NamedTuple):
    """What one rank does.

    `arrays` says of which kind the parts of all ranks are. `options` are those of `quern.train`, with
    `copies` and `part_cache` of `quern.Parts`. `fit` is an estimator of `quern.estimator` where one is
    trained, with all that the whole decides. `again`: the rank has died, and joins the others.
    """

    name: str  # of the run
    meet: str
    ranks: int
    rank: int
    key: str
    part: Part
    arrays: bool
    options: dict
    fit: Any = None
    again: bool = False


class Result(NamedTuple):
    """A trained model as bytes, and how its training went."""

    model: bytes
    history: list
    report: Any

    def load(self):
        """The `quern.Model`."""
        from .model import _from_bytes

        made = _from_bytes(self.model)
        made.report, made._history = self.report, list(self.history)
        return made


def need(module, package, why):
    """Imports a module that the user has to install."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as failure:
        raise UnsupportedError(f"{why} needs the package {package}: {failure}", "",
                               f'install it: pip install "{package}"') from failure


def secret():
    """The key of a run."""
    return secrets.token_hex(32)


def address(host):
    """A free port of this machine, as the others reach it."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
        one.bind((host, 0))
        port = one.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# ------------------------------------------------------------------------------------- rows

def _is_arrow(chunk):
    return type(chunk).__module__.partition(".")[0] == "pyarrow"


def _tables(chunks):
    """Arrow tables of frames; what pandas keeps as an index is left out."""
    arrow = need("pyarrow", "pyarrow", "a table of an engine")
    for chunk in chunks:
        if isinstance(chunk, arrow.RecordBatch):
            yield arrow.Table.from_batches([chunk])
        else:
            yield chunk if _is_arrow(chunk) else arrow.Table.from_pandas(chunk, preserve_index=False)


def _write_table(path, chunks):
    """One Arrow file of all chunks that have rows. Columns that a chunk has as nulls alone get the type
    of the others."""
    arrow = need("pyarrow", "pyarrow", "a table of an engine")
    tables = [table.replace_schema_metadata(None) for table in _tables(chunks)]
    tables = [table for table in tables if table.num_rows] or tables[:1]
    whole = arrow.concat_tables(tables, promote_options="permissive")
    need("pyarrow.feather", "pyarrow", "a table of an engine")
    with arrow.OSFile(path, "wb") as file, arrow.ipc.new_file(file, whole.schema) as writer:
        writer.write_table(whole.unify_dictionaries())
    return whole.num_rows


def _rows(chunk):
    return chunk.shape[0] if hasattr(chunk, "shape") else len(chunk)


def _joined(arrays):
    import numpy as np

    if any(part is None for part in arrays):
        return None
    if hasattr(arrays[0], "columns"):
        import pandas

        return pandas.concat(arrays, ignore_index=True)
    return np.concatenate([np.asarray(part) for part in arrays])


def save(folder, chunks, lost=None):
    """Writes the rows of a rank into a new folder below `folder`, in the order of the chunks.

    Parameters
    ----------
    folder : path or None
        None: the folder of temporary files.
    chunks : list
        Frames of pandas, tables or batches of Arrow. Or of arrays: tuples of values, labels and
        weights, of which the last two may be None.
    lost : Part, optional
        That of a rank which has died, and whose rows these are. The other ranks know the path of its
        file: this one has the same, and is written if it is not there.

    Returns
    -------
    Part
    """
    chunks = [chunk for chunk in chunks if _rows(chunk[0] if isinstance(chunk, tuple) else chunk)]
    if not chunks:
        return Part()
    if lost and os.path.exists(lost.table or lost.arrays):
        return lost
    own = lost.folder if lost else tempfile.mkdtemp(prefix="quern-part-", dir=folder)
    os.makedirs(own, exist_ok=True)
    try:
        if not isinstance(chunks[0], tuple):
            path = os.path.join(own, "part.arrow")
            rows = _write_table(path + ".new", chunks)
            os.rename(path + ".new", path)
            return Part(own, table=path, rows=rows)
        path = os.path.join(own, "part.pickle")
        values = tuple(map(_joined, zip(*chunks)))
        with open(path, "wb") as file:
            pickle.dump(values, file, protocol=5)
        return Part(own, arrays=path, rows=_rows(values[0]))
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise


def contiguous(owners, workers):
    """Deals partitions to workers, so that each has neighbours and as many as before.

    Parameters
    ----------
    owners : list
        The worker that has each partition; None where nobody has it.
    workers : list
        All workers.

    Returns
    -------
    list of (worker, range)
        The ranks in their order, with all partitions in their order. Workers that have none come last.
    """
    places = {worker: [] for worker in workers}
    for k, owner in enumerate(owners):
        if owner in places:
            places[owner].append(k)
    sizes = {worker: len(had) for worker, had in places.items()}
    for _ in range(len(owners) - sum(sizes.values())):
        sizes[min(workers, key=sizes.get)] += 1
    having = sorted((w for w in workers if sizes[w]), key=lambda w: sum(places[w]) / max(len(places[w]), 1))
    dealt, end = [], 0
    for worker in having + [w for w in workers if not sizes[w]]:
        dealt.append((worker, range(end, end + sizes[worker])))
        end += sizes[worker]
    return dealt


# ------------------------------------------------------------------------------------- a rank

def tell(file, message):
    """Writes a message of a worker or a rank to the other one."""
    content = pickle.dumps(message, protocol=5)
    file.write(LENGTH.pack(len(content)) + content)
    file.flush()


def hear(file):
    """The next whole message, or None at the end."""
    head = file.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    size = LENGTH.unpack(head)[0]
    content = file.read(size)
    return pickle.loads(content) if len(content) == size else None  # it ended while it told this


_running = {}  # the children of this process, with the name of their run


def run(task, on_event=None):
    """Runs a rank in a child of this process, and waits for it.

    Parameters
    ----------
    task : Task
        What it does.
    on_event : callable, optional
        Called with "epoch" and an `Epoch`, and with "note" and a text.

    Returns
    -------
    Result

    Raises
    ------
    Lost
        The child was ended from outside.
    QuernError
        What the library says in the rank.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    child = subprocess.Popen([sys.executable, "-c", _CODE, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             start_new_session=True)  # Ctrl-C is for the driver
    _running[child] = task.name
    try:
        try:
            tell(child.stdin, task)
        except BrokenPipeError:
            pass  # its end says more
        return _result(child, task, on_event)
    finally:
        del _running[child]
        child.kill()
        child.wait()
        for pipe in (child.stdout, child.stdin):
            try:
                pipe.close()
            except BrokenPipeError:
                pass


def end(name):
    """Ends the ranks of a run in this process. Another thread waits for them in `run`."""
    for child, run_of in list(_running.items()):
        if run_of == name:
            child.kill()


def _result(child, task, on_event):
    while (message := hear(child.stdout)) is not None:
        kind, value = message
        if kind == "result":
            return value
        if kind == "failed":
            raise value
        if on_event:
            on_event(kind, value)
    code = child.wait()
    raise Lost(f"the process of rank {task.rank} ended with {code}", socket.gethostname(),
               "memory may have been short; the log of the worker may say more")


def outcome(results, failures):
    """What the ranks together have made: a result, or the failure that tells most. None: some rank was
    lost and no other one finished, so all of it can be done again."""
    if results:
        return results[0]
    if any(isinstance(failure, Lost) for failure in failures):
        return None
    raise min(failures, key=lambda failure: isinstance(failure, (ClusterError, FileError)))  # others have left


class Restarts:
    """Which ranks of an attempt have died and are started again, each as often as `most`. Rank 0 lets the
    others in, so it is not."""

    def __init__(self, most):
        self.most, self.times = most, {}

    def may(self, rank, failure):
        """Whether the rank, which has ended so, is started again. It is counted then. One that was not let in
        in time tries again."""
        lost = isinstance(failure, (Lost, ClusterError) if rank in self.times else Lost)
        if rank == 0 or not lost or self.times.get(rank, 0) >= self.most:
            return False
        self.times[rank] = self.times.get(rank, 0) + 1
        return True

    def all(self, ranks):
        """Whether each of these was started again: nobody waits for them when there is a result."""
        return all(rank in self.times for rank in ranks)


class Late:
    """Whether those that a driver still waits for have had `GRACE` seconds since the first result."""

    def __init__(self):
        self.since = None

    def __call__(self, results):
        if results and self.since is None:
            self.since = time.monotonic()
        return self.since is not None and time.monotonic() - self.since > GRACE


class Epochs:
    """Calls a function with each epoch once, also after a restart, and another one with the notes of all ranks."""

    def __init__(self, on_epoch, on_note):
        self.on_epoch, self.on_note, self.last = on_epoch, on_note, (0, 0)

    def hear(self, kind, value):
        """What a rank tells: "epoch" and an `Epoch`, or "note" and a text."""
        if kind == "epoch":
            self.call(value)
        elif kind == "note" and self.on_note:
            self.on_note(value)

    def call(self, epoch):
        """The next epoch."""
        place = epoch.stage, epoch.epoch
        if self.on_epoch and place > self.last:
            self.last = place
            self.on_epoch(epoch)

    def end(self, history):
        """Also those that are still on their way."""
        for epoch in history:
            self.call(epoch)


def answers(model, outputs):
    """The type of what `Model.predict` returns."""
    import numpy as np

    if outputs or model.real:
        return np.dtype(np.float32)
    if model.classes is None:
        return np.dtype(np.int32)
    whole = all(re.fullmatch("-?[0-9]+", name or "") for name in model.classes)
    return np.dtype(np.int64 if whole else "U1")


def alone():
    """Before a worker predicts: it is not a rank, although mpirun or srun may have started it."""
    if not ranks._asked:
        ranks.join("none")


def must_be(condition, what, remedy):
    """Raises UsageError with `what` where the condition is false."""
    if not condition:
        raise UsageError(what, "", remedy)
