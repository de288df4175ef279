"""A TCP flow with endless data.

    tcp_flow.py receive ADDRESS PORT
    tcp_flow.py send ADDRESS PORT CONGESTION-CONTROL

The receiver prints "ready", then for each tenth of a second a line with the time (time.monotonic) and the number of
bytes. It uses only the standard library. Both run until they are ended.
"""

from __future__ import annotations

import socket
import sys
import time

_CHUNK = bytes(1 << 16)
_LINE_SECONDS = 0.1


def main() -> None:
    """Run one end."""
    role, address, port, *rest = sys.argv[1:]
    if role == "receive":
        receive(address, int(port))
    else:
        send(address, int(port), rest[0])


def receive(address: str, port: int) -> None:
    """Accept one flow and count it."""
    with socket.create_server((address, port)) as listener:
        print("ready", flush=True)
        flow, _ = listener.accept()
    with flow:
        room, count, due = bytearray(len(_CHUNK)), 0, 0.0
        while size := flow.recv_into(room):
            count += size
            now = time.monotonic()
            if now >= due:
                due = now + _LINE_SECONDS
                print(now, count, flush=True)


def send(address: str, port: int, congestion_control: str) -> None:
    """Send for ever."""
    with socket.socket() as flow:
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        flow.connect((address, port))
        while True:
            flow.sendall(_CHUNK)


if __name__ == "__main__":
    main()
