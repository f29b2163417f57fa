"""Several processes that train one model.

Under ``mpirun python train.py``, ``srun`` or ``torchrun`` the ranks find each other by themselves, at
the first call that reads, trains, predicts or describes. Without a launcher each process calls `join`.
"""

import atexit
import ctypes as C
import os
import sys
import weakref

from . import _abi
from ._library import library, new, said, sized, text

_cluster = None
_asked = False
_process = None
_kept = []
_parts = weakref.WeakSet()  # tables in parts: they end before the cluster does


def _print(message):
    print(f"quern: {message}", file=sys.stderr)


def _hears(on_note):
    def note(_, message):
        if _cluster and is_writer():
            on_note(said(message))

    return _abi.qn_note_fn(note)


def join(meet=None, ranks=0, rank=0, key=None, interface=None, meet_timeout=0, rank_timeout=0, min_ranks=0,
         transport=None, on_note=None):
    """Connects this process with the other ranks, and waits for them.

    Parameters
    ----------
    meet : str, optional
        "HOST:PORT", the address of rank 0. None: what mpirun, srun or torchrun left in the
        environment; without any of them this process is alone. "none": it is alone in any case.
    ranks, rank : int
        With `meet`: the number of ranks, and which of them this is, from 0.
    key : str, optional
        With `meet`: a secret that all ranks know.
    interface : str, optional
        Network interface or address to listen on.
    meet_timeout, rank_timeout : float
        Seconds to wait for the ranks, and after which a silent one counts as failed. 0: the default.
    min_ranks : int
        With `meet`, on rank 0: a training begins when so many ranks are there. The others may join it
        later. 0: all.
    transport : str, optional
        What carries sums between machines: "sockets", "mpi", or None for the faster one.
    on_note : callable, optional
        Called on the rank that writes, with messages such as which rank has died or joined. Without it
        they are printed on stderr.

    Returns
    -------
    int
        The number of ranks.
    """
    global _cluster, _asked, _process
    leave()
    options = _abi.qn_cluster_options()
    library().qn_cluster_options_init(options)
    options.rendezvous, options.key = text(meet), text(key)
    options.interface, options.transport = text(interface), text(transport)
    options.ranks, options.rank, options.min_ranks = ranks, rank, min_ranks
    options.rendezvous_timeout, options.rank_timeout = meet_timeout, rank_timeout
    options.on_note = _hears(on_note or _print)
    _kept[:] = [options]
    _asked, _process = True, os.getpid()
    _cluster = new("qn_cluster_join", C.byref(options))
    return count()


def current():
    """The address of the cluster or None; joins the ranks of a launcher at the first call."""
    if not _asked:
        join()
    return _cluster if _process == os.getpid() else None


def leave():
    """Tells the other ranks that this one leaves. Called at the end of the program."""
    global _cluster
    address, _cluster = _cluster, None
    if address and _process == os.getpid():
        for table in list(_parts):
            table._end()
        library().qn_cluster_leave(address)


def count():
    """The number of ranks at the start; 1 without others."""
    return library().qn_cluster_ranks(current())


def index():
    """The number of this rank, from 0."""
    return library().qn_cluster_rank(current())


def is_writer():
    """Whether this rank writes files and reports to the user."""
    return bool(library().qn_cluster_is_writer(current()))


atexit.register(leave)


def _over_ranks(options, devices=None):
    """Lets devices and the ranks of a cluster divide the work; `options` keeps what it points to."""
    compute = sized(_abi.qn_compute)
    compute.cluster = current()
    if devices is not None:
        compute.devices = text(devices)
    options.compute = C.pointer(compute)
    return options
