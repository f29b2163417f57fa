"""Runs of several ranks, by whatever starts them, each with a clock.

    with launch.Run(quern, "openmpi5", 4, ["train", ...], deaths=True) as run:
        run.until('"epoch"')             # till some rank printed that
        run.kill(2)                      # kill -9 of rank 2
        codes = run.wait(30)             # exit codes: mpirun's own, or with "meet" each rank's

LAUNCHERS are the three MPIs' mpirun and "meet", which starts each rank by hand. With `net` (see
hosts.py) the ranks run on its hosts: `slots` says how many on each, the launcher is on the first.
With `apart` each rank of "meet" counts as a machine of its own without hosts: it has a user
namespace of its own, and sums travel over TCP. When the block is left, nothing of the run is left.
"""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

import hosts
import machine
from ranks import free_port

# Where each is found, how it is told of ranks without a core of their own, of a host file, of what
# starts processes elsewhere, and that the others live on when a rank dies. MPICH cannot be told:
# its option -disable-auto-cleanup changes nothing for ranks that a signal ends (4.0.2).
MPIS = {
    "openmpi5": dict(program=str(Path(sys.executable).with_name("mpirun")),
                     crowded=["--map-by", ":OVERSUBSCRIBE"], hostfile="--hostfile",
                     agent=["--prtemca", "plm_ssh_agent"], deaths=["--with-ft", "ulfm"],
                     form="{} slots={}"),
    "openmpi4": dict(program="mpirun.openmpi", crowded=["--oversubscribe"], hostfile="--hostfile",
                     agent=["-mca", "plm_rsh_agent"], deaths=["--enable-recovery"],
                     form="{} slots={}"),
    "mpich": dict(program="mpiexec.mpich", crowded=[], hostfile="-f",
                  agent=["-launcher", "ssh", "-launcher-exec"], deaths=[], form="{}:{}"),
}
LAUNCHERS = [*MPIS, "meet"]
AS_ROOT = {f"{p}_ALLOW_RUN_AS_ROOT{s}": "1" for p in ("OMPI", "PRTE") for s in ("", "_CONFIRM")}
RANK = re.compile(rb"(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)")


def users_environment(**more):
    """This process's, without what a launcher above it left there."""
    return {k: v for k, v in os.environ.items()
            if not re.match(r"OMPI_|PMI|PMIX_|PRTE_|SLURM_|MPI_|HYD|TORCHELASTIC_", k)} | more


def clean_environment(**more):
    """The same for root, whom Open MPI refuses otherwise."""
    return users_environment() | AS_ROOT | more


@functools.cache
def joins(quern):
    """Whether that program can be one rank of many."""
    told = subprocess.run([quern, "train", "--help"], capture_output=True, text=True, timeout=60)
    return "--meet" in told.stdout


# Quern takes ranks of different user namespaces for ranks of different machines.
APART = ["unshare", "--user", "--map-root-user", "--"]


def need(launcher):
    if launcher in MPIS and shutil.which(MPIS[launcher]["program"]) is None:
        pytest.skip(f"no {launcher} here; scripts/setup.sh says how to get it")


class Run:
    def __init__(self, quern, launcher, ranks, args, *, net=None, slots=None, deaths=False,
                 each=None, options=(), environment=None, cwd=None, apart=False):
        """`each`: rank -> further arguments of that rank alone. `options`: of the launcher."""
        need(launcher)
        if not joins(quern):
            pytest.skip("this build of quern does not join other ranks")
        self.quern, self.launcher, self.ranks, self.net = quern, launcher, ranks, net
        self.folder = Path(tempfile.mkdtemp(prefix="quern-run-"))
        self.tag = uuid.uuid4().hex
        self.environment = clean_environment(QUERN_TEST_RUN=self.tag, **(environment or {}))
        self.cwd, self.processes, self.outputs, self.known = cwd or self.folder, [], [], {}
        assert not apart or launcher == "meet" and not net, "these share namespaces or have hosts"
        if apart:
            machine.need("user namespaces")
        args = [str(a) for a in args]
        whole = [[quern, *args, *map(str, (each or {}).get(r, []))] for r in range(ranks)]
        try:
            if launcher == "meet":
                self._start_by_hand([APART + one for one in whole] if apart else whole, slots)
            else:
                self._start_by_mpi(whole, slots, deaths, list(map(str, options)), bool(each))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start_by_mpi(self, whole, slots, deaths, options, differ):
        mpi = MPIS[self.launcher]
        command = [mpi["program"], *options, *(mpi["deaths"] if deaths else [])]
        if not self.net:
            command += mpi["crowded"]
        else:
            command += [*mpi["agent"], str(self.net.agent), mpi["hostfile"],
                        str(self.net.hostfile(slots, mpi["form"]))]
        if differ:
            parts = [["-n", "1", *one] for one in whole]
            command += parts[0] + [word for one in parts[1:] for word in [":", *one]]
        else:
            command += ["-n", str(self.ranks), *whole[0]]
        self._start(command, 0)

    def _start_by_hand(self, whole, slots):
        key = self.folder / "key"
        key.write_text(uuid.uuid4().hex)
        key.chmod(0o600)
        address = self.net.addresses[0] if self.net else "127.0.0.1"
        places = [i for i, n in enumerate(slots or [self.ranks]) for _ in range(n)]
        meet = ["--meet", f"{address}:{free_port()}", "--ranks", str(self.ranks), "--key-file",
                str(key)]
        for rank, command in enumerate(whole):
            self._start([*command, *meet, "--rank", str(rank)], places[rank])

    def _start(self, command, host):
        if self.net:
            command = self.net.on(host, command, self.cwd)
        out = self.folder / f"output-{len(self.processes)}"
        with open(out, "wb") as file:
            self.processes.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=self.cwd,
                env=self.environment, preexec_fn=hosts.die_with_parent, start_new_session=True))
        self.outputs.append(out)

    # ------------------------------------------------------------------------- what it is doing

    def text(self):
        return "".join(out.read_bytes().decode(errors="replace") for out in self.outputs)

    def events(self, kind=None):
        """What was printed in JSON, by all ranks together."""
        rows = [json.loads(line) for line in self.text().splitlines()
                if line.startswith("{") and line.endswith("}")]
        return [row for row in rows if kind in (None, row.get("event"))]

    def pids(self):
        """{rank: pid} of the ranks that run."""
        if len(self.known) < self.ranks:
            for pid, environment in _tagged(self.tag):
                try:
                    if os.readlink(f"/proc/{pid}/exe") != os.path.realpath(self.quern):
                        continue
                    line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                found = RANK.search(environment)
                rank = (int(found[1]) if found else
                        int(line[line.index(b"--rank") + 1]) if b"--rank" in line else 0)
                self.known[rank] = pid
        return {rank: pid for rank, pid in self.known.items() if _runs(pid)}

    def until(self, what, seconds=30):
        """Waits till `what` was printed, or is true."""
        seconds *= machine.PATIENCE
        end = time.monotonic() + seconds
        while not (what() if callable(what) else what in self.text()):
            if time.monotonic() > end or self.over() and not self.pids():
                time.sleep(0.05)
                if what() if callable(what) else what in self.text():
                    return
                pytest.fail(f"it never came to {what} in {seconds} s\n{self.story()}")
            time.sleep(0.001)

    def over(self):
        """Whether all that was started has ended."""
        return all(p.poll() is not None for p in self.processes)

    def kill(self, rank, how=signal.SIGKILL):
        """Signals a rank; False when it was not there any more."""
        pid = self.known.get(rank) or self.pids().get(rank)
        try:
            os.kill(pid, how)
            return True
        except (ProcessLookupError, TypeError):
            return False

    def wait(self, seconds=60):
        """Exit codes of what was started; a run that does not end fails the test."""
        seconds *= machine.PATIENCE
        end = time.monotonic() + seconds
        for process in self.processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                pytest.fail(f"it hangs after {seconds} s\n{self.story()}", pytrace=False)
        return [p.returncode for p in self.processes]

    def story(self):
        """All that is known, for a message."""
        lines = [f"{self.launcher}, {self.ranks} ranks: "
                 f"{[p.poll() for p in self.processes]} (None: it runs)"]
        for rank, pid in sorted(self.pids().items()):
            lines.append(f"-- rank {rank} ({pid}) runs:")
            done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-ex",
                                   "thread apply all bt 12"], capture_output=True, text=True,
                                  timeout=60) if shutil.which("gdb") else None
            lines += [line for line in (done.stdout.splitlines() if done else [])
                      if line.startswith(("#", "Thread"))]
        for i, out in enumerate(self.outputs):
            lines.append(f"-- output {i}:\n{out.read_text(errors='replace')[-4000:]}")
        return "\n".join(lines)

    def close(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            left = [pid for pid, _ in _tagged(self.tag)]
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for process in self.processes:
                process.poll()
            if not left:
                break
            time.sleep(0.01)
        shutil.rmtree(self.folder, ignore_errors=True)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _tagged(tag):
    """(pid, environment) of the processes of a run: its mark is in their environment."""
    mark = f"QUERN_TEST_RUN={tag}".encode()
    for pid, _ in hosts.processes():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in environment:
            yield pid, environment
