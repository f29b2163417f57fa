"""Several hosts on one machine: each has its own network, host name, /etc/hosts and a folder that
the others do not see, joined by a switch whose cables can be pulled.

    with hosts.Hosts(2) as net:
        started = subprocess.Popen(net.on(0, ["hostname"]))   # runs on the first of them
        net.unplug(1)                                         # nothing passes, nothing is told
        net.plug(1)
        net.lose(1)                                           # a power cut

With `faults=True` the switch is a program (fault_switch.py) that injects faults on command:

    with hosts.Hosts(3, faults=True) as net:
        net.cut([0], [1])                                 # what host 0 sends to host 1 is dropped
        net.mend()                                        # all paths pass again
        net.loss(10)                                      # percent of the packets of all paths
        net.reset(0, 2)                                   # a forged RST into their connections
        net.clear()                                       # no fault any more

A host is a process that holds Linux namespaces (network, host name, mounts); whatever else runs on
it has entered them. Process numbers are the machine's own, so a test can signal any process. When
the tests end, however they end, the holders die with them, and with the holders what is on them.
`net.folder` is seen by all hosts at the same place; `net.own` is a place of each host's own.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

import machine

NAMES = ["host-a", "host-b", "host-c", "host-d", "host-e"]
PR_SET_PDEATHSIG = 1
SWITCH = Path(__file__).with_name("fault_switch.py")
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    """For Popen's preexec_fn: the process ends when the one that tests ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def processes():
    """(pid, network namespace) of every process that still runs."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if Path(entry.path, "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    yield int(entry.name), os.readlink(f"{entry.path}/ns/net")
            except OSError:
                pass  # it ended meanwhile


def bytes_per_second(rate):
    """A rate as tc writes it: "100mbit" or "8kbit"."""
    number, unit = float(rate[:-4]), rate[-4:]
    return number * {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[unit] / 8


class Hosts:
    def __init__(self, count, delay=0.0, own_size="64m", names=NAMES, faults=False):
        """`delay`: seconds that a frame takes between the first host and each other one.
        `faults`: the switch is a program that can inject faults; a delay needs that as well."""
        machine.need("network namespaces")
        self.names = names[:count]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(count)]
        self.folder = Path(tempfile.mkdtemp(prefix="quern-hosts-"))
        self.own = self.folder / "own"
        self.holders, self.spaces, self.program = [], [], None
        try:
            self._make(own_size, faults or delay > 0)
            if delay:
                for i in range(1, count):
                    self.delay(delay, [0], [i])
                    self.delay(delay, [i], [0])
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _make(self, own_size, faults):
        self.own.mkdir()
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{a} {n}\n" for a, n in zip(self.addresses, self.names)))
        self.switch = self._hold("ip link set lo up" if faults else
                                 "ip link set lo up; ip link add name bridge type bridge;"
                                 "ip link set bridge up")
        if faults:
            self._start_program()
        for i, name in enumerate(self.names):
            tmp = self.folder / f"tmp-{name}"
            tmp.mkdir()
            pid = self._hold(f"hostname {name}; mount --bind {self.folder}/hosts /etc/hosts;"
                             f"mount -t tmpfs -o size={own_size} own {self.own}; ip link set lo up")
            self._do(self.switch,
                     f"ip link set port{i} netns {pid} name eth0" if faults else
                     f"ip link add name port{i} type veth peer name eth0 netns {pid};"
                     f"ip link set port{i} master bridge; ip link set port{i} up")
            self._do(pid, f"ip link set eth0 address 02:00:00:00:00:{i:02x};"
                          f"ip address add {self.addresses[i]}/24 dev eth0; ip link set eth0 up")
        self._write_agent()

    def _start_program(self):
        self.program = subprocess.Popen(
            ["nsenter", "-t", str(self.switch), "-n", sys.executable, SWITCH, str(len(self.names))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        said = self.program.stdout.readline().strip()
        if said != "ready":
            pytest.skip(f"no switch with faults on this machine: {said or 'it ended at once'}")

    def _tell(self, *words):
        """Gives the switch a command; what it answers."""
        assert self.program, "this fault needs Hosts(faults=True)"
        self.program.stdin.write(" ".join(map(str, words)) + "\n")
        self.program.stdin.flush()
        said = self.program.stdout.readline().split(maxsplit=1)
        assert said and said[0] == "ok", f"the switch said {said}"
        return said[1] if len(said) > 1 else ""

    def _hold(self, script):
        """Makes namespaces in which a process sleeps; its number."""
        command = ["unshare", "--net", "--uts", "--mount", "--propagation", "private", "sh", "-ec",
                   f"{script}; echo ready; exec sleep 1000000"]
        holder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent)
        self.holders.append(holder)
        said = holder.stdout.readline()
        assert said == "ready\n", f"a host could not be made: {said}{holder.stdout.read()}"
        self.spaces.append(os.readlink(f"/proc/{holder.pid}/ns/net"))
        return holder.pid

    def _do(self, pid, script):
        subprocess.run(["nsenter", "-t", str(pid), "-n", "sh", "-ec", script], check=True,
                       timeout=60)

    def _write_agent(self):
        """What mpirun calls in place of ssh: AGENT [options] HOST COMMAND..."""
        cases = "".join(f"    {n}|{a}) pid={self._pid(i)} tmp={self.folder}/tmp-{n} ;;\n"
                        for i, (n, a) in enumerate(zip(self.names, self.addresses)))
        self.agent = self.folder / "agent"
        self.agent.write_text(textwrap.dedent("""\
            #!/bin/sh
            while [ "${1#-}" != "$1" ]; do shift; done
            host=$1
            shift
            case $host in
            CASES    *) echo "ssh: no host $host" >&2; exit 255 ;;
            esac
            # Where a login would have left us, and with nothing of the caller's environment.
            exec nsenter -t "$pid" -n -u -m --wd=/ env -i PATH="$PATH" HOME="$HOME" \\
                TMPDIR="$tmp" QUERN_TEST_RUN="$QUERN_TEST_RUN" sh -c "$*"
            """).replace("CASES", cases))
        self.agent.chmod(0o755)

    def _pid(self, i):
        return self.holders[1 + i].pid

    def on(self, i, command, cwd="/"):
        """The command, to be run on host i."""
        return ["nsenter", "-t", str(self._pid(i)), "-n", "-u", "-m", f"--wd={cwd}", "--", "env",
                f"TMPDIR={self.folder}/tmp-{self.names[i]}", *map(str, command)]

    def run(self, i, *command, **options):
        options = {"check": True, "capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run(self.on(i, command), **options)

    def read(self, i, path):
        """A file as host i sees it; None where there is none."""
        done = subprocess.run(self.on(i, ["cat", path]), capture_output=True, timeout=60)
        return done.stdout if done.returncode == 0 else None

    def hostfile(self, slots, form="{} slots={}"):
        """A file for mpirun: how many ranks each host takes; MPICH writes "{}:{}"."""
        path = self.folder / "hostfile"
        path.write_text("".join(form.format(n, s) + "\n"
                                for n, s in zip(self.names, slots) if s))
        return path

    # ------------------------------------------------------------------ what goes wrong

    def unplug(self, i):
        """Pulls the cable at the switch: frames are lost, and nobody is told."""
        if self.program:
            self.cut([i])
            self.cut(None, [i])
        else:
            self._do(self.switch, f"ip link set port{i} down")

    def plug(self, i):
        if self.program:
            self.mend([i])
            self.mend(None, [i])
        else:
            self._do(self.switch, f"ip link set port{i} up")

    def rate(self, i, rate, burst="64kb"):
        """How much passes to and from host i, as tc writes it: "100mbit". With a burst of 64 KiB or less the
        kernel cuts what programs send into packets, which takes it much time; else it passes on up to 64 KiB at
        once, as network cards do."""
        if self.program:
            self._tell("rate", i, bytes_per_second(rate))
            return
        shape = f"root tbf rate {rate} burst {burst} latency 200ms"
        self._do(self.switch, f"tc qdisc replace dev port{i} {shape}")
        self._do(self._pid(i), f"tc qdisc replace dev eth0 {shape}")

    # The next ones need `faults=True`. `a` and `b` are lists of hosts; None: all.

    def _each(self, name, a, b, *words):
        everyone = range(len(self.names))
        for i in everyone if a is None else a:
            for k in everyone if b is None else b:
                if i != k:
                    self._tell(name, i, k, *words)

    def cut(self, a=None, b=None):
        """What `a` send to `b` is dropped; nothing is done about the other direction."""
        self._each("cut", a, b)

    def mend(self, a=None, b=None):
        self._each("mend", a, b)

    def delay(self, seconds, a=None, b=None):
        """What `a` send to `b` arrives so much later."""
        self._each("delay", a, b, seconds)

    def loss(self, percent, a=None, b=None):
        """So many packets from `a` to `b` are dropped, chosen at random."""
        self._each("loss", a, b, percent)

    def seed(self, number):
        """Of the choice of lost packets."""
        self._tell("seed", number)

    def flip(self, a, b, least=1, offset=0, bit=0, head=False):
        """Inverts a bit of the next TCP payload of `least` bytes or more from host a to host b and
        corrects its checksum, so that only the receiving program can notice. `head`: of a payload
        that begins like a message of Quern."""
        self._tell("flip", a, b, least, offset, bit, *(["head"] if head else []))

    def reset(self, a, b):
        """Forges an RST into both ends of each TCP connection between two hosts; how many."""
        return int(self._tell("reset", a, b))

    def clear(self):
        """No fault any more, and no memory of connections."""
        self._tell("clear")

    def counts(self):
        """What the switch did: frames, bytes, dropped, flipped, resets."""
        return json.loads(self._tell("count"))

    def processes_on(self, i):
        return [pid for pid, space in processes()
                if space == self.spaces[1 + i] and pid != self._pid(i)]

    def kill_all(self, i):
        """Ends everything that runs on host i at once; its system lives on and tells the others."""
        for pid in self.processes_on(i):
            _kill(pid)

    def lose(self, i):
        """A power cut: nothing more comes from host i, and nothing runs there."""
        self.unplug(i)
        self.kill_all(i)

    def close(self):
        if self.program:
            self.program.kill()
            self.program.wait()
            self.program.stdin.close()
            self.program.stdout.close()
            self.program = None
        end = time.monotonic() + 20
        mine = {h.pid for h in self.holders}
        while time.monotonic() < end:
            left = [pid for pid, space in processes() if space in self.spaces and pid not in mine]
            for pid in left:
                _kill(pid)
            if not left:
                break
            time.sleep(0.02)
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
