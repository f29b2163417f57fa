"""A rank that a worker of Dask, Ray or Spark has started (_engine.py): what it is told, and what it tells.

The task comes by the standard input. Its end ends the rank, so that no rank outlives its worker. What
is printed goes to stderr.
"""

import os
import pickle
import threading

from . import _engine, ranks
from ._options import FILE
from .data import Data
from .errors import QuernError
from .parts import Parts


def main():
    task_file, answer_file = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    task = _engine.hear(task_file)
    if task is None:
        return
    threading.Thread(target=_end_with, args=(task_file,), daemon=True).start()
    try:
        answer = "result", _trained(task, lambda *event: _engine.tell(answer_file, event))
    except BaseException as failure:
        answer = "failed", _told(failure)
    ranks.leave()  # first: the worker ends this process as soon as it has the answer
    _engine.tell(answer_file, answer)


def _end_with(file):
    file.read(1)
    os._exit(1)


def _told(failure):
    """The failure as the worker can raise it, where not all of its modules may be."""
    try:
        pickle.loads(pickle.dumps(failure))
        return failure
    except Exception:
        return QuernError(f"{type(failure).__name__}: {failure}")


def _trained(task, tell):
    told = {"on_note": lambda text: tell("note", text)}
    ranks.join(task.meet, ranks=task.ranks, rank=task.rank, key=task.key,
               meet_timeout=_engine.DOOR if task.again else 0, **told)
    if ranks.is_writer():
        told["on_epoch"] = lambda epoch: tell("epoch", epoch)
    how = {word: task.options.pop(word) for word in ("copies", "part_cache") if word in task.options}
    if task.fit is not None:
        made = task.fit._fit_part(*_arrays(task.part), {**told, **task.options}, how)
    else:
        from .training import train

        columns = {word: task.options.pop(word) for word in list(task.options) if word in FILE - {"shape"}}
        made = train(_parts(task, columns, how), progress=False, **told, **task.options)
    return _engine.Result(bytes(made), made.history, made.report)


def _parts(task, columns, how):
    if task.arrays:
        values, labels, weights = _arrays(task.part)
        if weights is not None:
            values, labels = Data(values, labels, weights=weights, **columns), None
        return Parts(values, labels, **how, **columns)
    return Parts([task.part.table] if task.part.table else [], **how, **columns)


def _arrays(part):
    """Values, labels and weights of this rank; None: it has no rows."""
    if part.arrays is None:
        return None, None, None
    with open(part.arrays, "rb") as file:
        return pickle.load(file)
