"""What the machine lets its tests do: namespaces, mounts, an image's root folder.

A container, a chroot or a cgroup may forbid each of them, and no file says so beforehand. So each is
tried once in a session, with the very commands that the tests use; `need("hosts")` skips the calling
test with what the attempt said.
"""

import functools
import os
import shutil
import subprocess
import tempfile
import time

import pytest

# Tests that take minutes of processor time and repeat what shorter ones show in another place.
LONG = pytest.mark.skipif("QUERN_LONG_TESTS" not in os.environ,
                          reason="takes long; QUERN_LONG_TESTS=yes runs it")

# Time limits that only end what hangs are so many times what an idle machine needs: neighbours may
# take most of the processor.
PATIENCE = 4

# name: (programs, root only, script). A script runs in an empty folder of its own.
ABILITIES = {
    "user namespaces": (["unshare"], False, "unshare --user --map-root-user -- true"),
    "network namespaces": (["unshare", "nsenter", "ip", "tc", "mount"], True, r"""
        cat >inside <<'END'
        ip link set lo up
        hostname quern-probe
        echo 127.0.0.1 localhost >hosts
        mount --bind hosts /etc/hosts
        mount -t tmpfs -o size=1m own .
        ip link add name bridge type bridge
        ip link add name port type veth peer name eth0
        ip link set port master bridge
        ip link set port up
        ip address add 10.77.0.1/24 dev eth0
        tc qdisc replace dev port root tbf rate 8mbit burst 64kb latency 200ms
        nsenter -t $$ -n -u -m true
END
        unshare --net --uts --mount --propagation private sh -e ./inside"""),
    "process namespaces": (["unshare", "nsenter", "ip", "mount"], True, r"""
        cat >inside <<'END'
        ip link set lo up
        ip link add inner type veth peer name outer
        hostname quern-probe
        echo 127.0.0.1 localhost >hosts
        mount --bind hosts /etc/hosts
        nsenter -t $$ -p -n -u -m true
END
        unshare --pid --net --uts --mount --fork --kill-child --mount-proc sh -e ./inside"""),
    "chroot": (["unshare", "chroot", "mount"], True, r"""
        cat >inside <<'END'
        mkdir top
        mount --rbind / top
        mount -t proc proc top/proc
        chroot top true
END
        unshare --pid --mount --fork --kill-child --mount-proc sh -e ./inside"""),
    "mounting a disk": (["unshare", "mount"], True,
                        "unshare --mount sh -ec 'mount -t tmpfs -o size=16k tmpfs .'"),
}


@functools.cache
def lacking(ability):
    """Why the machine does not let its tests have this, or None."""
    programs, root, script = ABILITIES[ability]
    missing = [p for p in programs if shutil.which(p) is None]
    if missing:
        return f"{', '.join(missing)} not installed; scripts/setup.sh says how to get it"
    if root and os.geteuid() != 0:
        return f"{ability}: only root may do that"
    with tempfile.TemporaryDirectory(prefix="quern-probe-") as folder:
        try:
            done = subprocess.run(["sh", "-ec", script], cwd=folder, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=60)
        except subprocess.TimeoutExpired:
            return f"{ability}: the attempt did not end on this machine"
    said = (done.stdout + done.stderr).strip().splitlines()
    if done.returncode:
        return f"{ability}: not on this machine ({said[-1] if said else 'it gave no reason'})"
    return None


def need(*abilities):
    """Skips the calling test where one of them is lacking."""
    for ability in abilities:
        if reason := lacking(ability):
            pytest.skip(reason)


def computed(pid):
    """Seconds of processor time that a process has had."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until_computed(processes, seconds):
    """Waits until each of these processes has had so much processor time from now on, or has ended."""
    begun = {p: computed(p.pid) for p in processes}
    end = time.monotonic() + 60 * PATIENCE
    while any(p.poll() is None and computed(p.pid) < since + seconds for p, since in begun.items()):
        assert time.monotonic() < end, "they do not compute"
        time.sleep(0.005)


def caught(attempt):
    """For signals that have to come in the midst of what they stop. A machine may be fast, and a test may
    wait for a processor: attempt(size) then returns None, and the next one makes a job 4 times as long."""
    for size in (1, 4, 16, 64):
        found = attempt(size)
        if found is not None:
            return found
    pytest.fail("what was to be stopped had always ended before")
