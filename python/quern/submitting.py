"""Jobs of a batch system: what the command `quern submit` hands over, and what becomes of it."""

import json
import os
import shutil
import subprocess
import sys
import time

from . import errors

_ENDED = ("done", "failed", "stopped", "lost")
_CODES = {2: errors.UsageError}
_WORDS = {"out": "output"}


def _program(program):
    """The command: the given one, one beside this Python, or one on the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "quern")
    found = os.fspath(program) if program is not None else beside if os.access(beside, os.X_OK) else shutil.which("quern")
    if found is None:
        raise errors.UnsupportedError("the command quern is not on the PATH", "", "install it, or give program=")
    return found


def _run(program, *words):
    """The events that the command prints with --json."""
    try:
        done = subprocess.run([_program(program), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise errors.FileError(error.strerror, str(program), "program= names the command quern") from None
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    failed = [event for event in events if event.get("event") == "error"]
    if done.returncode == 0:
        return events
    kind = _CODES.get(done.returncode, errors.QuernError)
    if failed:
        raise kind(failed[-1]["what"], failed[-1]["where"], failed[-1]["remedy"])
    raise kind(done.stderr.strip() or f"quern ended with {done.returncode}")


def _options(given):
    """Words of a command line: weight_decay=0.1 is --weight-decay=0.1."""
    words = []
    for name, value in given.items():
        option = "--" + _WORDS.get(name, name).replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words


class Job:
    """A job that was submitted.

    Attributes
    ----------
    engine, id, name : str
        The batch system ("slurm", "kubernetes", "local"), its number or name of the job, and its name.
    result : str
        The file that the job writes last.
    command : str
        What it runs, as a line for a shell.
    """

    def __init__(self, record, program=None):
        self.engine, self.id, self.name = record["engine"], record["id"], record.get("name", "")
        self.command, self._program = record.get("command", ""), program
        self._place = record.get("log", "")
        self.result = os.path.join(record.get("directory", ""), record.get("model", ""))

    def __repr__(self):
        return f"<quern.Job {self.engine} {self.id} {self.name}>"

    def _event(self):
        for event in _run(self._program, "jobs", "--json"):
            if (event.get("engine"), event.get("id")) == (self.engine, self.id):
                return event
        return {"state": "unknown", "detail": "it is not in the list of jobs"}

    @property
    def state(self):
        """"queued", "running", "done", "failed", "stopped", "lost" or "unknown", as the batch system says now."""
        return self._event()["state"]

    @property
    def detail(self):
        """The words of the batch system about the state."""
        return self._event()["detail"]

    @property
    def log(self):
        """The text of the log so far. Of a job of Kubernetes kubectl gives it."""
        if self.engine == "kubernetes":
            done = subprocess.run(self._place.split(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
            return done.stdout
        try:
            with open(self._place, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""  # it has not begun

    def wait(self, timeout=None, pause=1.0):
        """Waits until the job has ended, and returns its state.

        Parameters
        ----------
        timeout : float, optional
            Seconds, after which TimeoutError is raised; the job goes on.
        pause : float
            Seconds between two questions to the batch system.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (state := self.state) not in _ENDED:
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{self!r} is {state} after {timeout} seconds")
            time.sleep(pause)
        return state

    def load(self):
        """The model that the job wrote, as quern.load gives it."""
        from .model import load

        return load(self.result)


def submit(engine, command, options, *, program=None, **resources):
    """Submits a training or the run of a kernel, as the command `quern submit` does.

        job = quern.submit("slurm", "train", {"data": "train.csv", "epochs": 20, "output": "m.safetensors"}, ranks=4)
        if job.wait() == "done":
            model = job.load()

    Parameters
    ----------
    engine : str
        "slurm", "kubernetes" or "local".
    command : str
        "train", "run", or with Kubernetes "serve" or "watch".
    options : dict or list of str
        Options of this command by their names, or its words. True is an option without a value, a
        list one that is given several times; None and False leave it out.
    program : path, optional
        The command `quern`. Without it one beside Python, or on the PATH.
    **resources
        Options of `quern submit`: ranks, cpus, gpus, memory, time, name, partition, image, and others.

    Returns
    -------
    Job
    """
    if not isinstance(engine, str) or engine not in ("slurm", "kubernetes", "local"):
        raise errors.UsageError(f"engine cannot be {engine!r}", "", 'write "slurm", "kubernetes" or "local"')
    words = _options(options) if isinstance(options, dict) else [os.fspath(word) for word in options]
    [record] = [event for event in _run(program, "submit", f"--{engine}", "--json", *_options(resources), "--", command, *words)
                if event.get("event") == "submitted"]
    return Job(record, program)


def jobs(*, program=None):
    """The jobs that this user submitted from this machine, the oldest first: a list of Job."""
    return [Job(event, program) for event in _run(program, "jobs", "--json") if event.get("event") == "job"]
