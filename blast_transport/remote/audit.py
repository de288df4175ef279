"""Record in the host's own system log (syslog(3)) of the orders of a sender that connects over SSH.

The sender's output alone would leave the host's operator without a record.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_SOCKET = Path("/dev/log")
_PRIORITY = 10 * 8 + 5
"""Facility authpriv, severity notice."""
_PIECE = 800
"""Every system log accepts records of this size; longer text is split, so that nothing is cut off."""


def record(text: str, log: Path = _SOCKET) -> None:
    """Write `text` in as many records as necessary; do nothing without a system log."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    pieces = [shown[begin : begin + _PIECE] for begin in range(0, len(shown), _PIECE)]
    for number, piece in enumerate(pieces, 1):
        counted = f" ({number}/{len(pieces)})" if len(pieces) > 1 else ""
        line = f"<{_PRIORITY}>blast-agent[{os.getpid()}]: {piece}{counted}"
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.sendto(line.encode(errors="replace"), str(log))


def client_description(environment: Mapping[str, str]) -> str:
    """Return the local user and the client's address, as the SSH server reports it (sshd(8))."""
    client = environment.get("SSH_CONNECTION", "").partition(" ")[0] or "an unknown address"
    return f"user {os.geteuid()}, from {client}"
