"""A real Slurm on this machine, for one test module: munged, slurmctld and three slurmds.

    with Slurm(folder) as slurm:
        job = slurm.submit("train.sbatch", cwd=folder)
        slurm.until(job, "COMPLETED")

All of it lives in namespaces of its own (processes, network, mounts, host name), so its ports and
names are nobody else's, and it dies with its first process, however the tests end. Programs that
shall see it are started through `slurm.run`.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import machine

NODES = ["n1", "n2", "n3"]
NEEDED = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol"]
HOST = "quern-slurm"
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

CONFIGURATION = """
ClusterName=quern
SlurmctldHost={host}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# A job that was requeued may start again after so many seconds; 120 where nothing is said.
AuthInfo=socket={folder}/munge/socket,cred_expire=20
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ReturnToService=1
SlurmdTimeout=10
KillWait=5
InactiveLimit=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
JobRequeue=1
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
NodeName={nodes} NodeHostname={host} Port=[7001-7003] CPUs=8 State=UNKNOWN
PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP
"""

# The first process of the namespaces. Whatever runs in them ends with it.
START = r"""
set -eu
cd "$FOLDER"
ip link set lo up
# Slurm asks for an address of a network before it resolves any name.
ip link add inner type veth peer name outer
ip addr add 10.77.0.1/24 dev inner
ip link set inner up
ip link set outer up
hostname "$HOST"
printf '127.0.0.1 localhost\n10.77.0.1 %s n1 n2 n3\n' "$HOST" >hosts
mount --bind hosts /etc/hosts
munged --force --foreground --num-threads=2 --key-file=munge/key --socket="$FOLDER/munge/socket" \
    --log-file=munge/log --pid-file=munge/pid --seed-file=munge/seed >munge.log 2>&1 &
until [ -S munge/socket ]; do sleep 0.05; done
slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
for node in n1 n2 n3; do
    QUERN_NODE=$node slurmd -D -N "$node" -f "$SLURM_CONF" >/dev/null 2>&1 &
done
# What daemons leave is this process's, which reaps it as bash does.
while :; do sleep 1; done
"""


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _lacking():
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [p for p in NEEDED if shutil.which(p, path=path) is None]
    if missing:
        return f"{', '.join(missing)} not installed; scripts/setup.sh says how to get it"
    return machine.lacking("process namespaces")


def _read(pid, what):
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _signal(pids, number):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, number)


def _parent(pid):
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _ancestors(pid):
    found = []
    while pid := _parent(pid):
        found.append(pid)
    return found


class Slurm:
    def __init__(self, folder):
        lacking = _lacking()
        if lacking:
            pytest.skip(lacking)
        self.folder = Path(folder)
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"),
                    "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def __enter__(self):
        (self.folder / "munge").mkdir(parents=True, mode=0o755)
        (self.folder / "state").mkdir()
        (self.folder / "munge" / "key").write_bytes(os.urandom(128))
        (self.folder / "munge" / "key").chmod(0o600)
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(folder=self.folder, host=HOST, user="root", nodes="n[1-3]"))
        env = {**self.env, "FOLDER": str(self.folder), "HOST": HOST}
        self.first = subprocess.Popen(
            ["unshare", "--pid", "--net", "--uts", "--mount", "--fork", "--kill-child",
             "--mount-proc", "bash", "-c", START], env=env, preexec_fn=_die_with_parent,
            stdout=subprocess.DEVNULL, stderr=open(self.folder / "start.log", "w"))
        try:
            self.until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # unshare holds the first process of the namespaces; when that is killed, all are.
        self.first.kill()
        self.first.wait(timeout=60)

    def _wait(self, condition, seconds, complaint):
        end = time.monotonic() + seconds * machine.PATIENCE
        while not (found := condition()):
            if time.monotonic() > end:
                pytest.fail(f"{complaint}\n{self.logs()}", pytrace=False)
            time.sleep(0.1)
        return found

    def logs(self):
        return "\n".join(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-12:])
                         for log in sorted(self.folder.glob("*.log")))

    def _inside(self):
        with open(f"/proc/{self.first.pid}/task/{self.first.pid}/children") as f:
            children = f.read().split()
        return children[0] if children else None

    def run(self, *command, timeout=120, **kwargs):
        """Run a command where Slurm is seen."""
        inside = self._inside()
        if inside is None:
            return subprocess.CompletedProcess(command, 1, "", "Slurm has ended")
        env = {**self.env, **kwargs.pop("env", {})}
        return subprocess.run(["nsenter", "-t", inside, "-p", "-n", "-u", "-m", f"--wd={kwargs.pop('cwd', '/')}",
                               "--", *map(str, command)],
                              capture_output=True, text=True, timeout=timeout, env=env, **kwargs)

    def _out(self, *command):
        try:
            return self.run(*command, timeout=60).stdout.strip()
        except subprocess.TimeoutExpired:
            return ""

    def ask(self, *command, **kwargs):
        """The output of a command that has to succeed."""
        done = self.run(*command, **kwargs)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def submit(self, script, *options, cwd, env=None):
        """The number of the job."""
        return self.ask("sbatch", "--parsable", *options, script, cwd=cwd, env=env or {})

    def job(self, number):
        """What scontrol says of it, as a dictionary; of a job of several parts, the first."""
        text = self._out("scontrol", "-o", "show", "job", number)
        return dict(re.findall(r"(\w[\w:/]*)=(\S*)", text.splitlines()[0])) if text else {}

    def until(self, number, *states, seconds=60):
        """Wait until the job is in one of these states; fails when it ends in another."""
        final = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}

        def there():
            job = self.job(number)
            state = job.get("JobState", "")
            if state in final - set(states):
                pytest.fail(f"job {number} ended as {state}, {job}\n{self.logs()}", pytrace=False)
            return job if state in states else None

        return self._wait(there, seconds, f"job {number} was never {' or '.join(states)}: "
                                          f"{self.job(number)}")

    def until_idle(self):
        """Wait until every node is free: a job that asks for a range takes what is free.

        Jobs that a failed test left behind end. A node that Slurm gave up, because a loaded machine
        answered too late, is taken back."""
        def free():
            given_up = self._out("sinfo", "-h", "-N", "-t", "down,drain,fail", "-o", "%N").split()
            for node in given_up:
                self._out("scontrol", "update", f"NodeName={node}", "State=RESUME")
            return self._out("sinfo", "-h", "-t", "idle", "-o", "%D") == "3"

        self._out("scancel", "--user=root")
        self._wait(free, 60, "the nodes did not become idle")

    def lose_node(self, node):
        """The node's slurmd and all that it started are killed, as by a power cut: at one moment.

        All are halted first, those that could tell of it before the others. A script whose srun is
        killed before it would go on, and end the job in another way. They are killed from the last
        descendant up: when a parent ends before its halted children, the kernel may send them SIGHUP
        and let them run, and a rank would tell the others to stop."""
        halted = []
        while new := [pid for pid in self._of_node(node) if pid not in halted]:
            _signal(new, signal.SIGSTOP)
            halted += new
        _signal(sorted(halted, key=lambda pid: len(_ancestors(pid)), reverse=True), signal.SIGKILL)

    def _of_node(self, node):
        """Numbers of these processes: its slurmd, then Slurm's others, then what they run."""
        here = {pid: set(_read(pid, "environ").split("\0")) for pid in self.processes()}
        daemon = [p for p in here if f"QUERN_NODE={node}" in here[p]]
        work = [p for p in here if f"SLURMD_NODENAME={node}" in here[p]]
        # Slurm's own processes between the two have an environment without the node's name.
        between = {parent for parent in map(_parent, work) if _read(parent, "comm").startswith("slurmstepd")}
        return [*daemon, *between, *work]

    def mend_node(self, node):
        """Its slurmd runs again, and it takes jobs."""
        self.ask("bash", "-c", f"QUERN_NODE={node} slurmd -N {node} -f $SLURM_CONF")
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self._wait(lambda: self._out("sinfo", "-h", "-n", node, "-o", "%t").startswith("idle"), 30,
                   f"{node} did not come back")

    def processes(self, name=None):
        """Numbers, as the machine counts them, of the processes in there that run that program."""
        found = []
        inside = os.readlink(f"/proc/{self._inside()}/ns/pid")
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (os.readlink(entry / "ns" / "pid") == inside
                        and name in (None, Path(os.readlink(entry / "exe")).name)):
                    found.append(int(entry.name))
            except OSError:
                pass  # it ended meanwhile
        return found
