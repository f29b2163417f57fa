"""Hands frames from each of two network devices to the other, late: a long line.

hosts.py runs it inside the switch, because the kernel here has nothing that delays (netem).

    python3 long_line.py SECONDS      makes the devices "near" and "far0", says "ready", goes on
"""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
TAP_WITHOUT_HEADER = 0x1002


def device(name):
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22s", name.encode(), TAP_WITHOUT_HEADER, b""))
    return end


def hand_over(ends, delay):
    late = collections.deque()
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else None
        for end in select.select(ends, [], [], wait)[0]:
            try:
                while True:
                    late.append((time.monotonic() + delay, ends[ends[0] == end],
                                 os.read(end, 65536)))
            except OSError:
                pass  # no further frame, or a device that is not up yet
        while late and late[0][0] <= time.monotonic():
            _, to, frame = late.popleft()
            try:
                os.write(to, frame)
            except OSError:
                pass  # a full queue, or a device that is not up yet: a lost frame


if __name__ == "__main__":
    both = [device("near"), device("far0")]
    print("ready", flush=True)
    hand_over(both, float(sys.argv[1]))
