"""Emulated distance: returns the frames of a network device to it, MILLISECONDS later.

    delay_relay.py DEVICE MILLISECONDS

The program creates the device (TAP), which disappears with the process, and prints "ready". The device accepts TCP
super-packets with their header (virtio_net_hdr), so that a few thousand per second carry gigabits. It exists because
the kernel here has no netem, and uses only the standard library.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

_TUN = "/dev/net/tun"
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TAP, _IFF_NO_PI, _IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
_CHECKSUMS, _TCP_PACKETS = 0x01, 0x02
"""TUN_F_CSUM and TUN_F_TSO4: frames may lack their checksum and segmentation."""
_LARGEST = (1 << 16) + 64
_MAX_AT_ONCE = 64
_MAX_BYTES = 64 << 20
"""Bytes delayed at the same time; further frames are lost, as in a router."""


def main() -> None:
    """Relay until terminated."""
    device, milliseconds = sys.argv[1:]
    tap = _opened(device)
    print("ready", flush=True)
    relay(tap, float(milliseconds) / 1000)


def relay(tap: int, seconds: float) -> None:
    """Write each frame that is read from `tap`, a non-blocking descriptor, back to it `seconds` later."""
    way: deque[tuple[float, bytes]] = deque()
    on_the_way = 0
    while True:
        select.select([tap], [], [], max(0.0, way[0][0] - time.monotonic()) if way else None)
        for frame in _waiting(tap):
            if on_the_way < _MAX_BYTES:
                way.append((time.monotonic() + seconds, frame))
                on_the_way += len(frame)
        now = time.monotonic()
        while way and way[0][0] <= now:
            _, frame = way.popleft()
            on_the_way -= len(frame)
            os.write(tap, frame)


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
