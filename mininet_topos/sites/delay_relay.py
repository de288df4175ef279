"""Distance: frames from a network device return to it after a delay in milliseconds.

    python -m mininet_topos.sites.delay_relay DEVICE MILLISECONDS

The device (TAP) is created here, and removed with the process. This kernel has no netem; at 14 microseconds of CPU per
frame this suffices for emulated sites. Prints `{"event": "ready"}`. Standard library only.
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
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_LARGEST_FRAME = 65536
_MAX_ON_THE_WAY = 50_000
"""Maximum number of frames in transit; further ones are lost, as in a router."""


def main() -> None:
    """Relay for good."""
    device, milliseconds = sys.argv[1:]
    tap = _opened(device)
    sys.stdout.write('{"event": "ready"}\n')
    sys.stdout.flush()
    relay(tap, float(milliseconds) / 1000)


def relay(tap: int, seconds: float) -> None:
    """Write each frame that is read from the non-blocking `tap` back to it after `seconds`."""
    way: deque[tuple[float, bytes]] = deque()
    while True:
        select.select([tap], [], [], max(0.0, way[0][0] - time.monotonic()) if way else None)
        for frame in _waiting(tap):
            if len(way) < _MAX_ON_THE_WAY:
                way.append((time.monotonic() + seconds, frame))
        now = time.monotonic()
        while way and way[0][0] <= now:
            os.write(tap, way.popleft()[1])


def _waiting(tap: int) -> list[bytes]:
    frames: list[bytes] = []
    # Arriving frames must not delay due ones.
    while len(frames) < 64:
        try:
            frames.append(os.read(tap, _LARGEST_FRAME))
        except BlockingIOError:
            break
    return frames


def _opened(device: str) -> int:
    tap = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH", device.encode(), _IFF_TAP | _IFF_NO_PI))
    return tap


if __name__ == "__main__":
    main()
