"""The hosts that other tests run on are what those tests believe them to be."""

import ast
import contextlib
import os
import random
import struct
import subprocess
import sys
import threading
import time

import pytest

import fault_switch
import hosts

# A server that sends back what it gets, and a client that says how long a byte, then many, took.
ECHO = """
import socket, threading
def echo(c):
    try:
        while data := c.recv(65536):
            c.sendall(data)
    except OSError:
        pass  # it was reset
s = socket.create_server(("0.0.0.0", 5000))
print("up", flush=True)
while True:
    c, _ = s.accept()
    threading.Thread(target=echo, args=[c]).start()
"""
ASK = """
import socket, sys, time
s = socket.create_connection(("host-a", 5000), timeout=4)
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


@pytest.mark.parametrize("faults", [False, True])
def test_cable(faults):
    with hosts.Hosts(2, faults=faults) as net, echo(net) as server:
        assert ask(net, 1)
        net.unplug(1)
        assert ask(net, 1) is None
        net.plug(1)
        assert ask(net, 1) or ask(net, 1) or ask(net, 1)  # hosts are slow to ask for one another
        net.rate(1, "20mbit")
        assert ask(net, 1, 600000)[1] > 0.1  # 4.8 million bits each way
        assert net.processes_on(0) == [server.pid] and not net.processes_on(1)
        net.lose(0)
        assert server.wait(timeout=60) == -9 and ask(net, 1) is None


def test_delay():
    with hosts.Hosts(2, delay=0.02) as net, echo(net):
        assert 0.04 <= ask(net, 1)[0]


# ---------------------------------------------------------------- faults on command

@pytest.fixture(scope="module")
def three():
    with hosts.Hosts(3, faults=True) as net, echo(net):
        yield net


@pytest.fixture
def net(three):
    """Three hosts without a fault, of which the first echoes."""
    three.clear()
    assert ask(three, 1) or ask(three, 1)
    return three


# A client that sends 100,000 bytes once something is said to it, and says what it got back.
TALK = """
import socket, sys
s = socket.create_connection(("host-a", 5000), timeout=20)
s.sendall(b"x"); s.recv(1)
print("connected", flush=True)
sys.stdin.readline()
sent, got = bytes(100000), b""
try:
    s.sendall(sent)
    while len(got) < len(sent):
        got += s.recv(65536) or sys.exit("closed")
    print([(i, b) for i, b in enumerate(got) if b])
except OSError as error:
    print(type(error).__name__)
"""


@contextlib.contextmanager
def talk(net, i=1):
    """Gives a function that lets the client go on and returns what it says."""
    with subprocess.Popen(net.on(i, [sys.executable, "-c", TALK]), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True,
                          preexec_fn=hosts.die_with_parent) as client:
        try:
            assert client.stdout.readline() == "connected\n"
            yield lambda: client.communicate("go\n", timeout=60)[0].strip()
        finally:
            client.kill()


def test_one_way(net):
    with talk(net, 1) as there, talk(net, 2) as elsewhere:
        before = net.counts()["dropped"]
        net.cut([0], [1])
        assert elsewhere() == "[]"
        assert net.counts()["dropped"] > before or ask(net, 1) is None
        net.mend()
        assert there() == "[]"


def test_outage_ends(net):
    """What was sent in the meantime arrives later."""
    with talk(net) as say:
        net.unplug(1)
        began = time.monotonic()
        mend = threading.Timer(0.3, net.plug, [1])
        mend.start()
        assert say() == "[]" and time.monotonic() - began > 0.3
        mend.join()


def test_loss(net):
    net.seed(1)
    net.loss(10)
    before = net.counts()
    with talk(net) as say:
        assert say() == "[]"
    after = net.counts()
    dropped, sent = (after[k] - before[k] for k in ("dropped", "frames"))
    assert 0.02 < dropped / (dropped + sent) < 0.25 and sent > 130, "packets were not split"


@pytest.mark.parametrize("lossy", [False, True])
def test_flipped_bit(lossy, net):
    """Once, at that place, whether the switch sees checksums (lossy) or not."""
    net.loss(1e-9 if lossy else 0)
    with talk(net) as say:
        net.flip(0, 1, least=100, offset=50, bit=3)
        assert say() == "[(50, 8)]"
    with talk(net) as say:
        assert say() == "[]"


def test_flipped_head(net):
    """What looks like the head of a message is waited for, but not for ever: only zeros come."""
    before = net.counts()["flipped"]
    net.loss(1e-9)  # splits what is sent into many packets
    with talk(net) as say:
        net.flip(0, 1, least=1000, offset=0, head=True)
        (place, value), = ast.literal_eval(say())
        assert value == 1 and place > 1000
    assert net.counts()["flipped"] == before + 1


def test_checksum_is_corrected():
    """For any place and length: what the receiver sums up is right again."""
    chance = random.Random(0)
    for size in range(1, 40):
        tcp = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 5 << 4, 0, 0, 0, 0) + chance.randbytes(size)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\x0a\0\0\1",
                         b"\x0a\0\0\2")
        pseudo = ip[12:20] + struct.pack("!BBH", 0, 6, len(tcp))
        right = fault_switch.checksum(pseudo + tcp).to_bytes(2, "big")
        frame = bytes(10) + bytes(12) + b"\x08\0" + ip + tcp[:16] + right + tcp[18:]
        segment = fault_switch.segment_of(frame)
        at = segment.payload + chance.randrange(size)
        wrong = fault_switch.flip(frame, segment, at, chance.randrange(8))
        assert [i for i in range(len(frame)) if frame[i] != wrong[i]][-1] == at
        assert fault_switch.checksum(pseudo + wrong[segment.tcp:]) == 0


def test_reset(net):
    """Both ends are told at once; other connections live on."""
    with talk(net) as say, talk(net, 2) as other:
        assert net.reset(0, 1) >= 2
        assert say() == "ConnectionResetError"
        assert other() == "[]"
    assert ask(net, 1)


def test_wrong_command(net):
    for words in (["pull", 1], ["cut", 1], ["cut", 0, 9], ["delay", 0, 1, "long"]):
        with pytest.raises(AssertionError, match="the switch said"):
            net._tell(*words)
    assert ask(net, 1)


def test_nothing_stays():
    """Processes on the hosts end with them, those that left their session and ignore signals too."""
    with hosts.Hosts(1) as net:
        with subprocess.Popen(net.on(0, ["setsid", "sh", "-c", "trap '' TERM HUP; sleep 100 & wait"]),
                              preexec_fn=hosts.die_with_parent) as shell:
            end = time.monotonic() + 60
            while len(net.processes_on(0)) < 2 and time.monotonic() < end:
                time.sleep(0.01)
            there = net.processes_on(0)
            assert len(there) == 2 and shell.pid in there
            net.close()
    assert not set(there) & {pid for pid, _ in hosts.processes()}
