"""The hosts that other tests run on are what those tests believe them to be."""

import contextlib
import os
import subprocess
import sys
import time

import hosts

# A server that sends back what it gets, and a client that says how long a byte, then many, took.
ECHO = """
import socket
s = socket.create_server(("0.0.0.0", 5000))
print("up", flush=True)
while True:
    c, _ = s.accept()
    while data := c.recv(65536):
        c.sendall(data)
"""
ASK = """
import socket, sys, time
s = socket.create_connection(("host-a", 5000), timeout=1)
s.setsockopt(6, 1, 1)
for size in (1, 1, int(sys.argv[1])):
    began, got = time.monotonic(), 0
    s.sendall(bytes(size))
    while got < size:
        got += len(s.recv(65536))
    print(time.monotonic() - began)
"""


@contextlib.contextmanager
def echo(net):
    with subprocess.Popen(net.on(0, [sys.executable, "-c", ECHO]), stdout=subprocess.PIPE,
                          text=True, preexec_fn=hosts.die_with_parent) as server:
        try:
            assert server.stdout.readline() == "up\n"
            yield server
        finally:
            server.kill()


def ask(net, i, size=1):
    """Seconds of a byte there and back and of many; None when host-a cannot be reached."""
    done = net.run(i, sys.executable, "-c", ASK, size, check=False)
    return [float(t) for t in done.stdout.split()][1:] if done.returncode == 0 else None


def test_names_and_folders():
    with hosts.Hosts(3) as net:
        assert [net.run(i, "hostname").stdout.strip() for i in range(3)] == net.names
        net.run(1, "sh", "-c", f"echo mine > {net.own}/file; echo ours > {net.folder}/file")
        assert [net.read(i, net.own / "file") for i in range(3)] == [None, b"mine\n", None]
        assert [net.read(i, net.folder / "file") for i in range(3)] == [b"ours\n"] * 3
    assert not net.folder.exists()
    assert os.uname().nodename not in net.names


def test_cable():
    with hosts.Hosts(2) as net, echo(net) as server:
        assert ask(net, 1)
        net.unplug(1)
        assert ask(net, 1) is None
        net.plug(1)
        assert ask(net, 1) or ask(net, 1) or ask(net, 1)  # hosts are slow to ask for one another
        net.rate(1, "20mbit")
        assert ask(net, 1, 600000)[1] > 0.1  # 4.8 million bits each way
        assert net.processes_on(0) == [server.pid] and not net.processes_on(1)
        net.lose(0)
        assert server.wait(timeout=10) == -9 and ask(net, 1) is None


def test_long_line():
    with hosts.Hosts(2, delay=0.02) as net, echo(net):
        assert 0.04 <= ask(net, 1)[0] < 0.5


def test_nothing_stays():
    """Processes on the hosts end with them, those that left their session and ignore signals too."""
    with hosts.Hosts(1) as net:
        with subprocess.Popen(net.on(0, ["setsid", "sh", "-c", "trap '' TERM HUP; sleep 100 & wait"]),
                              preexec_fn=hosts.die_with_parent) as shell:
            end = time.monotonic() + 10
            while len(net.processes_on(0)) < 2 and time.monotonic() < end:
                time.sleep(0.01)
            there = net.processes_on(0)
            assert len(there) == 2 and shell.pid in there
            net.close()
    assert not set(there) & {pid for pid, _ in hosts.processes()}
