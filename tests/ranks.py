"""Starting the ranks of a run by hand, on this machine, and waiting for all of them."""

import random
import re
import socket
import subprocess
import sys
import time

import pytest

import builds


def free_port():
    """Of loopback. Below 32768: from there on the system gives ports to connections of others,
    also one that was free a moment ago."""
    for port in random.SystemRandom().choices(range(10000, 30000), k=100):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # somebody has it
    raise OSError("no port is free")


def sockets_at(port):
    """How many connections the listener at that port of 127.0.0.1 has accepted or is about to;
    -1: nobody listens there."""
    with open("/proc/net/tcp") as table:
        states = [line.split()[3] for line in table if line.split()[1] == f"0100007F:{port:04X}"]
    return states.count("01") if "0A" in states else -1


ENDPOINT = 400  # bytes of an endpoint, which a rank sends after its handshake, which has fewer


def passed_at(port):
    """Bytes that the listener at that port has sent and received, of each connection."""
    builds.require("ss")
    told = subprocess.run(["ss", "-HtniO", "state", "established", f"sport = :{port}"], text=True, check=True,
                          capture_output=True).stdout.splitlines()
    return [tuple(int((re.search(rf"bytes_{way}:(\d+)", line) or [0, 0])[1]) for way in ("sent", "received"))
            for line in told]


def have_come(port, count):
    """Whether somebody listens at that port, and so many ranks have connected and sent their endpoints."""
    return sockets_at(port) == count and sum(got >= ENDPOINT for _, got in passed_at(port)) == count


def tail(text):
    return text if len(text) < 4000 else "...\n" + text[-4000:]


class Ranks:
    """`count` ranks of one command; `own` adds words for some ranks: {1: ["--lr", "0.2"]};
    `programs` names another program for some: {1: ["qemu-aarch64", "quern"]}.

    Use it with `with`: whatever happens, no rank outlives the block."""

    def __init__(self, quern, count, *words, own=None, cwd=None, env=None, meet=None, wrap=None,
                 programs=None, timeout=120):
        meet = meet or f"127.0.0.1:{free_port()}"
        self.timeout = timeout
        self.rank = []
        for i in range(count):
            program = (programs or {}).get(i, [quern])
            command = [*map(str, [*program, *words]), "--meet", meet, "--ranks", str(count), "--rank",
                       str(i), *map(str, (own or {}).get(i, []))]
            self.rank.append(subprocess.Popen(
                (wrap(i) if wrap else []) + command, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env, cwd=cwd))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.rank:
            if p.poll() is None:
                p.kill()
        for p in self.rank:
            p.wait()

    def wait(self):
        """[(exit code, stdout, stderr)] of all ranks."""
        deadline = time.monotonic() + self.timeout
        done = []
        for i, p in enumerate(self.rank):
            try:
                out, err = p.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                for other in self.rank:
                    other.kill()
                said = "\n".join(f"--- rank {k}: {tail(''.join(o.communicate()))}"
                                 for k, o in enumerate(self.rank) if k >= i)
                pytest.fail(f"rank {i} did not end in {self.timeout} s\n{said}", pytrace=False)
            done.append((p.returncode, out, err))
        for k, (code, out, err) in enumerate(done):
            print(f"--- rank {k} ended with {code}\n{tail(out)}{tail(err)}", file=sys.stderr)
        return done


def run(quern, count, *words, status=0, **more):
    """Starts, waits, and checks that every rank ended with `status` (None: any)."""
    with Ranks(quern, count, *words, **more) as ranks:
        done = ranks.wait()
    if status is not None:
        assert [code for code, _, _ in done] == [status] * count
    return done
