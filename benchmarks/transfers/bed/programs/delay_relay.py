"""Emulated path: returns the frames of a network device to it, MILLISECONDS later, and loses some if ordered.

    delay_relay.py DEVICE MILLISECONDS

The program creates the device (TAP), which disappears with the process, and prints "ready". It exists because the
kernel here has no netem, and uses only the standard library. Lines on standard input change the path:

    delay MILLISECONDS    of frames that arrive from now on; frames never overtake each other
    rate BITS-PER-SECOND  of a link, with a queue, before the delay (inf: no limit)
    queue BYTES           that wait for the link; further frames are lost
    loss SHARE            of all frames, at random
    burst SECONDS         for which all frames are lost (0: no longer)

Each is answered with "ok", the number of frames until now, and the number of lost ones; a line that is no command, with
"error:" and the commands. Loss happens before the queue.

The device accepts TCP super-packets with their header (virtio_net_hdr), so that a few thousand per second carry
gigabits. To lose one means to lose up to 44 segments, so the first `rate`, `loss` or `burst` ends that: from then on,
the kernel cuts super-packets into frames. It always does so with UDP super-packets, which the device never accepts.
"""

from __future__ import annotations

import fcntl
import math
import os
import random
import select
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator

_TUN = "/dev/net/tun"
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_CHECKSUMS, _TCP_PACKETS = 0x01, 0x02
"""TUN_F_CSUM and TUN_F_TSO4: frames may lack their checksum and segmentation."""
_VNET_HEADER = 10
"""Bytes of virtio_net_hdr before each frame, which no link carries."""
_LARGEST = (1 << 16) + 64
_MAX_AT_ONCE = 64
_MAX_BYTES = 64 << 20
"""Bytes delayed at the same time; further frames are lost, as in a router."""
_MAX_VALUES = {"delay": 60_000.0, "rate": math.inf, "queue": float(_MAX_BYTES), "loss": 1.0, "burst": math.inf}
_OF_FRAMES = ("rate", "loss", "burst")
_SEED = 1


def main() -> None:
    """Relay until terminated."""
    device, milliseconds = sys.argv[1:]
    tap = _opened(device)
    print("ready", flush=True)
    relay(tap, sys.stdin.fileno(), EmulatedPath(float(milliseconds)))


class EmulatedPath:
    """Frames on their way: lost, or queued for the link and then delayed. No sockets, no clock."""

    def __init__(self, milliseconds: float) -> None:
        self.values = {"delay": milliseconds, "rate": math.inf, "queue": float(_MAX_BYTES), "loss": 0.0}
        self.frames = self.lost = 0
        self._chance = random.Random(_SEED)
        self._lost_until = self._free_at = -math.inf
        # Frames that wait for the link, with their arrival; frames that are delayed, with the end of the delay.
        self._queue: deque[tuple[float, bytes]] = deque()
        self._delayed: deque[tuple[float, bytes]] = deque()
        self._queued_bytes = self._bytes = 0

    def follow(self, line: str, now: float) -> str:
        """Change the path by a command; return the answer."""
        try:
            name, text = line.split()
            value = float(text)
            valid = 0 <= value <= _MAX_VALUES[name] and (name, value) != ("rate", 0)
        except (ValueError, KeyError):
            valid = False
        if not valid:
            return (
                f"error: {line!r} is not a command: give delay MILLISECONDS, rate BITS-PER-SECOND (above 0), "
                "queue BYTES, loss SHARE (0 to 1) or burst SECONDS"
            )
        self._transmit(now)
        if name == "burst":
            self._lost_until = now + value
        else:
            self.values[name] = value
        return f"ok {self.frames} {self.lost}"

    def accept(self, frame: bytes, now: float) -> None:
        """Take a frame that arrives."""
        self.frames += 1
        full = self._queued_bytes + len(frame) > self.values["queue"] or self._bytes + len(frame) > _MAX_BYTES
        if full or now < self._lost_until or self._chance.random() < self.values["loss"]:
            self.lost += 1
            return
        self._queue.append((now, frame))
        self._queued_bytes += len(frame)
        self._bytes += len(frame)
        self._transmit(now)

    def take_due(self, now: float) -> Iterator[bytes]:
        """Yield the frames whose delay has passed."""
        self._transmit(now)
        while self._delayed and self._delayed[0][0] <= now:
            _, frame = self._delayed.popleft()
            self._bytes -= len(frame)
            yield frame

    def due(self) -> float:
        """Return the time at which `take_due` has something to do."""
        return min(self._delayed[0][0] if self._delayed else math.inf, self._free_at if self._queue else math.inf)

    def _transmit(self, now: float) -> None:
        """Let frames begin to pass the link that is free."""
        while self._queue and self._free_at <= now:
            arrived, frame = self._queue.popleft()
            self._queued_bytes -= len(frame)
            bits = (len(frame) - _VNET_HEADER) * 8
            self._free_at = max(self._free_at, arrived) + bits / self.values["rate"]
            self._delayed.append((self._free_at + self.values["delay"] / 1000, frame))


def relay(tap: int, orders: int, path: EmulatedPath) -> None:
    """Write each frame that is read from `tap`, a non-blocking descriptor, back to it; follow the lines of `orders`."""
    sources, text = [tap, orders], b""
    while True:
        due = path.due()
        wait = None if due == math.inf else max(0.0, due - time.monotonic())
        ready, _, _ = select.select(sources, [], [], wait)
        if orders in ready:
            if not (more := os.read(orders, _LARGEST)):
                sources.remove(orders)
            *lines, text = (text + more).split(b"\n")
            for line in lines:
                _obey(tap, path, line.decode(errors="replace"))
        for frame in _waiting(tap):
            path.accept(frame, time.monotonic())
        for frame in path.take_due(time.monotonic()):
            os.write(tap, frame)


def _obey(tap: int, path: EmulatedPath, line: str) -> None:
    if line.startswith(_OF_FRAMES):
        fcntl.ioctl(tap, _TUNSETOFFLOAD, _CHECKSUMS)
    print(path.follow(line, time.monotonic()), flush=True)


def _waiting(tap: int) -> list[bytes]:
    frames: list[bytes] = []
    # New frames must not delay due ones.
    while len(frames) < _MAX_AT_ONCE:
        try:
            frames.append(os.read(tap, _LARGEST))
        except BlockingIOError:
            break
    return frames


def _opened(device: str) -> int:
    tap = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH", device.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_VNET_HDR))
    fcntl.ioctl(tap, _TUNSETOFFLOAD, _CHECKSUMS | _TCP_PACKETS)
    return tap


if __name__ == "__main__":
    main()
