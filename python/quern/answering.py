"""Answers over HTTP: a server in this process."""

import ctypes as C
import os
import threading
import weakref

from . import _abi
from ._library import assign, call, library, new, sized, text
from ._options import _COMPUTE, _unknown, _words, fill_compute
from .errors import QuernError, UsageError
from .model import Model

_SERVER = {word: member for word, member in _words("server", _abi.qn_server_options).items() if member != "listen"}
_TIMES = {"ms": 1e-3, "s": 1}


def _seconds(value):
    """"20ms", "1s", or a number of seconds."""
    unit = next((unit for unit in _TIMES if isinstance(value, str) and value.endswith(unit)), None)
    return float(value[:-len(unit)]) * _TIMES[unit] if unit else value


def _run(address, faults):
    try:
        call("qn_server_run", address)
    except QuernError as fault:
        faults.append(fault)


def _end(address, thread):
    if thread.is_alive():
        library().qn_server_stop(address)
        thread.join()
    library().qn_server_free(address)


def _listed(models):
    """Pairs: name or None, and a model or a path."""
    if isinstance(models, dict):
        return list(models.items())
    return [(None, model) for model in (models if isinstance(models, (list, tuple)) else [models])]


def _add(address, name, model):
    if not isinstance(model, Model):
        path = os.fspath(model)
        call("qn_server_load", address, text(path if name is None else f"{name}={path}"))
        return
    name, _, version = (name or "model").partition(":")
    call("qn_server_add", address, text(name), text(version or None), model._address)


class Server:
    """Answers requests on threads of its own until `stop`, the end of a `with` block, or that of the
    process. `quern.serve` makes it.

    Attributes
    ----------
    address : str
        Such as "127.0.0.1:8080", with the port that the system chose.
    url : str
        The same as the address of a page.
    """

    def __init__(self, models, listen, options):
        own, compute, kept = sized(_abi.qn_server_options), sized(_abi.qn_compute), list(models)
        library().qn_server_options_init(own)
        chosen = {word: options.pop(word) for word in list(options) if word in _COMPUTE}
        kept += fill_compute(compute, chosen)
        if chosen:
            own.compute = C.pointer(compute)
        own.listen = text(listen)
        for word, value in options.items():
            if word not in _SERVER:
                raise _unknown(word, [*_SERVER, *_COMPUTE])
            try:
                member = _SERVER[word]
                kept.append(assign(own, member, _seconds(value) if member.endswith("_seconds") else value))
            except (TypeError, ValueError, OverflowError):
                raise UsageError(f"{word} cannot be {value!r}") from None
        self._faults = []
        address = new("qn_server_make", own)
        try:
            for name, model in models:
                _add(address, name, model)
            call("qn_server_start", address)
        except BaseException:
            library().qn_server_free(address)
            raise
        self.address = library().qn_server_address(address).decode()
        self.url = f"http://{self.address}"
        self._kept = kept, own, compute
        self._thread = threading.Thread(target=_run, args=(address, self._faults), name="quern.serve", daemon=True)
        self._thread.start()
        # What the server uses lives as long as it does, also where nobody has this object any more.
        self._ended = weakref.finalize(self, lambda *all: _end(address, all[0]), self._thread, *self._kept)

    def stop(self):
        """Takes no more requests, waits for those in progress, and ends. A second call does nothing.

        Raises
        ------
        QuernError
            What ended the server before.
        """
        self._ended()
        if self._faults:
            raise self._faults.pop()

    def wait(self):
        """Returns when the server has ended. Ctrl-C raises KeyboardInterrupt."""
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.stop()

    def __repr__(self):
        return f"<quern.Server at {self.url}{'' if self._ended.alive else ', stopped'}>"


def serve(models, port=8080, *, host="127.0.0.1", **options):
    """Answers requests over HTTP with models, as `quern serve` does (docs/serve.md).

        with quern.serve(model, port=0) as server:
            print(server.url)
            server.wait()

    Parameters
    ----------
    models : Model, path, list or dict
        A model is called "model", and a file by its name. A dict has names, "digits" or "digits:2"
        with a version, and models or paths. Folders of model files are paths, too.
    port : int
        0: the system chooses one (`Server.address`).
    host : str
        The address to listen on.
    **options
        Those of `quern serve` with underscores, such as ``latency="20ms"``, ``most_body=1 << 20``,
        ``waiting=1000``, ``embeddings="body:mean"``; and what computes: ``threads=4``, ``devices="gpu"``.

    Returns
    -------
    Server
        Which answers already.

    Raises
    ------
    QuernError
        Such as FileError where the port is taken, and UnsupportedError without libmicrohttpd.
    """
    if not isinstance(port, int) or not 0 <= port < 1 << 16:
        raise UsageError(f"the port cannot be {port!r}", "", "give one from 0 to 65535")
    listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Server(_listed(models), listen, options)
