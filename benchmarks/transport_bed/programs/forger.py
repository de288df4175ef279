"""Forges datagrams of a session that it overhears as it leaves this host by light.

    forger.py INTERFACE ADDRESS GROUP:PORT PER_SECOND sender|stranger

`sender`: with the sender's address and port, one segment of a block that comes within the window; `stranger`: with a
port of its own. Says `ready` when it listens.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

_ETHERNET, _IP, _UDP = 14, 20, 8
_HEADER = struct.Struct("<IIQ")
_SEGMENT_BYTES, _BLOCK_SEGMENTS = 1456, 44
_AHEAD_BLOCKS = 22
"""Of what leaves the host: behind a window of 16 blocks that waits in its queue, and before what comes after those."""
_STRANGERS_PORT = 9
_ALL_PROTOCOLS = 3
"""ETH_P_ALL: what leaves is heard too (packet(7))."""


def main() -> None:
    """Until it is ended."""
    interface, address, group, per_second, who = sys.argv[1:]
    host, _, port = group.partition(":")
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    ear.bind((interface, 0))
    mouth = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    print("ready", flush=True)
    due = 0.0
    while True:
        found = _overheard(ear.recv(1 << 17), socket.inet_aton(host), int(port))
        now = time.monotonic()
        if found is None or now < due:
            continue
        due = max(due + 1 / float(per_second), now - 0.1)
        source, session, segment = found
        block = segment // _BLOCK_SEGMENTS + _AHEAD_BLOCKS
        forged = _HEADER.pack(session, 0, block * _BLOCK_SEGMENTS + 20) + bytes(_SEGMENT_BYTES)
        sender = source if who == "sender" else _STRANGERS_PORT
        mouth.sendto(_datagram(address, host, sender, int(port), forged), (host, 0))


def _overheard(frame: bytes, group: bytes, port: int) -> tuple[int, int, int] | None:
    """(source port, session, segment) of a datagram of the sender's to the group."""
    begin = _ETHERNET + _IP
    if frame[_ETHERNET + 16 : begin] != group or len(frame) < begin + _UDP + _HEADER.size:
        return None
    source, destination = struct.unpack_from("!HH", frame, begin)
    session, _, segment = _HEADER.unpack_from(frame, begin + _UDP)
    # What we have forged ourselves comes by here as well.
    ours = frame[begin + _UDP + _HEADER.size :].count(0) > _SEGMENT_BYTES - 100
    return None if destination != port or ours else (source, session, segment)


def _datagram(source: str, destination: str, source_port: int, port: int, payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", source_port, port, _UDP + len(payload), 0) + payload
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    return struct.pack("!BBHHHBBH", 0x45, 0, _IP + len(udp), 0, 0, 1, socket.IPPROTO_UDP, 0) + ends + udp


if __name__ == "__main__":
    main()
