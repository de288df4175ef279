"""The program that the sshd of test_tl1_ssh.py runs for a login; the command, or that of its subsystem, selects a mode.

`bridge [PORT]` joins standard input and output to TCP, `flood` and `errors` fill standard output or standard error with
garbage, `deaf` reads and writes nothing, `leave STATUS` exits. Without a PORT it is the one in the file `port`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

NONSENSE = b"this is not TL1, and there is very much of it, line after line after line\r\n" * 800


def bridge(port: int) -> None:
    switch = socket.create_connection(("127.0.0.1", port))
    switch.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def up() -> None:
        while data := os.read(0, 65536):
            switch.sendall(data)
        switch.shutdown(socket.SHUT_WR)

    threading.Thread(target=up, daemon=True).start()
    while data := switch.recv(65536):
        os.write(1, data)


def main() -> None:
    asked = os.environ.get("SSH_ORIGINAL_COMMAND", "bridge").split()
    if asked[0] == "bridge":
        bridge(int(asked[1] if len(asked) > 1 else Path(sys.argv[1], "port").read_text()))
    elif asked[0] in ("flood", "errors"):
        while True:
            os.write(1 if asked[0] == "flood" else 2, NONSENSE)
    elif asked[0] == "deaf":
        while os.read(0, 1):
            pass
    else:
        sys.stderr.write("some error output\n")
        raise SystemExit(int(asked[1]))


if __name__ == "__main__":
    main()
