"""A network switch that injects faults: it delays, drops, slows down, corrupts and resets.

hosts.py runs it in a network namespace and moves its ports into those of the hosts, because the
kernel here has no netem. A port is a TAP device. Segments of up to 64 KiB pass unsplit
(IFF_VNET_HDR), so that a byte costs little; only a lossy path splits them, because real networks
lose packets.

    python3 fault_switch.py COUNT     makes the devices port0 .. port<COUNT-1>, prints "ready",
                                      or what this machine lacks

Port I belongs to the host with the hardware address 02:00:00:00:00:I. Each line of the standard
input is a command, answered by one line "ok ..." or "error ...". A and B are numbers of ports:

    cut A B                drops what A sends to B
    mend A B               undoes that
    delay A B SECONDS      from A to B
    loss A B PERCENT       of the packets from A to B, at random
    rate A BYTES           a second, to and from A; 0: no limit
    flip A B LEAST OFFSET BIT [head]
                           inverts one bit of the next TCP payload from A to B with LEAST bytes or
                           more, and corrects the checksum; an OFFSET below 0 counts from its end.
                           head: of a payload that begins like a message of Quern, unless many
                           payloads have passed by without one
    reset A B              ends each TCP connection between A and B by a forged RST on both sides
    seed N                 of the random numbers
    clear                  undoes all of the above
    count                  answers with counters in JSON
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
TAP, WITHOUT_INFO, WITH_VNET_HEADER = 0x2, 0x1000, 0x4000
CHECKSUM_AND_TSO = 0x1 | 0x2 | 0x4  # TUN_F_CSUM, TUN_F_TSO4, TUN_F_TSO6
VNET = 10                           # bytes of the header in front of each frame
NEEDS_CHECKSUM = 1                  # in its flags: the receiver does not verify
IP = VNET + 14                      # where the IPv4 header begins
FIN_SYN, RST = 0x03, 0x04
QUEUE_SECONDS = 0.2                 # what waits longer for a slow port is dropped
FRAMES_AT_ONCE = 64
MOST_TYPE = 64                      # types of Quern's messages are smaller
MOST_PASSED = 50                    # payloads that do not begin like one, then any is taken


def device(name):
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    flags = TAP | WITHOUT_INFO | WITH_VNET_HEADER
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22s", name.encode(), flags, b""))
    fcntl.ioctl(end, TUNSETOFFLOAD, CHECKSUM_AND_TSO)
    return end


def checksum(data):
    """The Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Segment:
    """Where the parts of a TCP segment are in its frame."""

    def __init__(self, frame, tcp):
        self.tcp = tcp
        self.payload = tcp + 4 * (frame[tcp + 12] >> 4)
        self.end = IP + int.from_bytes(frame[IP + 2:IP + 4], "big")
        self.ports = bytes(frame[tcp:tcp + 4])
        self.sequence = int.from_bytes(frame[tcp + 4:tcp + 8], "big")
        self.flags = frame[tcp + 13]

    def next_sequence(self):
        flagged = (self.flags & 1) + (self.flags >> 1 & 1)  # FIN and SYN count as a byte each
        return (self.sequence + self.end - self.payload + flagged) & 0xFFFFFFFF


def segment_of(frame):
    """None for a frame that is not IPv4 and TCP."""
    if len(frame) < IP + 40 or frame[IP - 2:IP] != b"\x08\x00" or frame[IP + 9] != 6:
        return None
    return Segment(frame, IP + 4 * (frame[IP] & 15))


def flip(frame, segment, at, bit):
    """The frame with one bit inverted and the checksum corrected (RFC 1624)."""
    frame = bytearray(frame)
    even = at - (at - segment.tcp) % 2
    before = int.from_bytes(frame[even:even + 2].ljust(2, b"\0"), "big")
    frame[at] ^= 1 << bit
    after = int.from_bytes(frame[even:even + 2].ljust(2, b"\0"), "big")
    if not frame[0] & NEEDS_CHECKSUM:
        field = segment.tcp + 16
        total = ~int.from_bytes(frame[field:field + 2], "big") & 0xFFFF
        total += (~before & 0xFFFF) + after
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        frame[field:field + 2] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(frame)


def forged_reset(frame, segment, sequence):
    """A frame with RST from the sender of that segment to its receiver."""
    tcp = segment.ports + struct.pack("!IIBBHHH", sequence, 0, 5 << 4, RST, 0, 0, 0)
    addresses = frame[IP + 12:IP + 20]
    mended = checksum(addresses + struct.pack("!BBH", 0, 6, len(tcp)) + tcp)
    tcp = tcp[:16] + mended.to_bytes(2, "big") + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + addresses
    ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
    return bytes(VNET) + frame[VNET:IP] + ip + tcp


class Path:
    """What happens to frames from one port to another."""

    def __init__(self):
        self.clear()
        self.connections = {}  # ports -> (frame, segment, next sequence number), as delivered

    def clear(self):
        self.cut, self.delay, self.loss, self.flips = False, 0.0, 0.0, []


class Switch:
    def __init__(self, count):
        self.ports = [device(f"port{i}") for i in range(count)]
        self.paths = [[Path() for _ in range(count)] for _ in range(count)]
        self.rates, self.busy = [0.0] * count, [[0.0] * count, [0.0] * count]
        self.late, self.number = [], 0  # a heap of (when, number, from, to, frame)
        self.random = random.Random(0)
        self.counts = dict.fromkeys(("frames", "bytes", "dropped", "flipped", "resets"), 0)

    # ------------------------------------------------------------------------------ frames

    def take(self, source):
        for _ in range(FRAMES_AT_ONCE):
            try:
                frame = os.read(self.ports[source], 70000)
            except OSError:
                return  # no further frame, or a device that is not up yet
            if frame[VNET] & 1:
                targets = range(len(self.ports))
            else:
                targets = [frame[VNET + 5]] if frame[VNET + 5] < len(self.ports) else []
            for target in targets:
                if target != source:
                    self.send(source, target, frame)

    def send(self, source, target, frame):
        path = self.paths[source][target]
        if path.cut or path.loss and self.random.random() < path.loss:
            self.counts["dropped"] += 1
            return
        if path.flips:
            frame = self.corrupt(path, frame)
        now = time.monotonic()
        due = now + path.delay
        for busy, port in ((self.busy[0], source), (self.busy[1], target)):
            if self.rates[port]:
                if busy[port] > now + QUEUE_SECONDS:
                    self.counts["dropped"] += 1
                    return
                busy[port] = max(busy[port], now) + len(frame) / self.rates[port]
                due = max(due, busy[port] + path.delay)
        if due <= now and not self.late:
            self.deliver(source, target, frame)
        else:
            self.number += 1
            heapq.heappush(self.late, (due, self.number, source, target, frame))

    def corrupt(self, path, frame):
        segment = segment_of(frame)
        if segment is None:
            return frame
        size = segment.end - segment.payload
        for wanted in path.flips:
            least, offset, bit, wait = wanted
            if size < max(1, least):
                continue
            kind = int.from_bytes(frame[segment.payload:segment.payload + 4], "little")
            if wait > 0 and not 0 < kind < MOST_TYPE:
                wanted[3] -= 1
                continue
            path.flips.remove(wanted)
            self.counts["flipped"] += 1
            at = segment.payload + offset % size
            return flip(frame, segment, at, bit)
        return frame

    def deliver(self, source, target, frame):
        try:
            os.write(self.ports[target], frame)
        except OSError:
            self.counts["dropped"] += 1  # a device that is not up yet
            return
        self.counts["frames"] += 1
        self.counts["bytes"] += len(frame)
        segment = segment_of(frame)
        if segment is None:
            return
        known, after = self.paths[source][target].connections, segment.next_sequence()
        before = known.get(segment.ports)
        fresh = before is None or segment.flags & FIN_SYN
        if fresh or (after - before[2]) & 0xFFFFFFFF < 1 << 31:
            known[segment.ports] = (frame[:IP + 20], segment, after)

    # ---------------------------------------------------------------------------- commands

    def between(self, a, b):
        return self.paths[int(a)][int(b)]

    def cut(self, a, b):
        self.between(a, b).cut = True

    def mend(self, a, b):
        self.between(a, b).cut = False

    def delay(self, a, b, seconds):
        self.between(a, b).delay = float(seconds)

    def loss(self, a, b, percent):
        self.between(a, b).loss = float(percent) / 100
        lossy = any(path.loss for path in self.paths[int(a)])
        fcntl.ioctl(self.ports[int(a)], TUNSETOFFLOAD, 0 if lossy else CHECKSUM_AND_TSO)

    def rate(self, a, size):
        self.rates[int(a)] = float(size)

    def flip(self, a, b, least, offset, bit, *head):
        wait = MOST_PASSED if head else 0
        self.between(a, b).flips.append([int(least), int(offset), int(bit), wait])

    def reset(self, a, b):
        forged = 0
        for source, target in ((int(a), int(b)), (int(b), int(a))):
            for frame, segment, sequence in self.paths[source][target].connections.values():
                os.write(self.ports[target], forged_reset(frame, segment, sequence))
                forged += 1
        self.counts["resets"] += forged
        return forged

    def seed(self, number):
        self.random.seed(int(number))

    def clear(self):
        for a, row in enumerate(self.paths):
            for path in row:
                path.clear()
                path.connections.clear()
            fcntl.ioctl(self.ports[a], TUNSETOFFLOAD, CHECKSUM_AND_TSO)
            self.rates[a] = self.busy[0][a] = self.busy[1][a] = 0.0

    def count(self):
        return json.dumps(self.counts)

    def obey(self, line):
        name, *words = line.split()
        if name not in ("cut", "mend", "delay", "loss", "rate", "flip", "reset", "seed", "clear",
                        "count"):
            return f"error: no command {name}"
        try:
            answer = getattr(self, name)(*words)
        except (ValueError, IndexError, TypeError, OSError) as error:
            return f"error: {line}: {error}"
        return "ok" if answer is None else f"ok {answer}"

    # -------------------------------------------------------------------------------- loop

    def run(self):
        """Until the standard input ends."""
        number, rest = {end: i for i, end in enumerate(self.ports)}, b""
        while True:
            wait = max(0.0, self.late[0][0] - time.monotonic()) if self.late else None
            for end in select.select([0, *self.ports], [], [], wait)[0]:
                if end:
                    self.take(number[end])
                    continue
                came = os.read(0, 65536)
                if not came:
                    return
                *lines, rest = (rest + came).split(b"\n")
                for line in lines:
                    print(self.obey(line.decode()), flush=True)
            while self.late and self.late[0][0] <= time.monotonic():
                self.deliver(*heapq.heappop(self.late)[2:])


if __name__ == "__main__":
    try:
        switch = Switch(int(sys.argv[1]))
    except OSError as error:
        sys.exit(print(f"no TAP devices: {error}"))
    try:
        os.nice(-10)  # it stands for hardware, which does not wait for the programs under test
    except OSError:
        pass
    print("ready", flush=True)
    switch.run()
