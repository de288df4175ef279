"""A record in the host's own system log (syslog(3)) of what a sender that came over SSH has it do.

What it would only tell the sender, an operator of the host could not look up afterwards.
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
"""Every system log takes records of this size; what is longer comes in several, so that nothing hides behind it."""


def record(text: str, log: Path = _SOCKET) -> None:
    """Say it, in as many records as it takes; where there is no system log nobody listens."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    pieces = [shown[begin : begin + _PIECE] for begin in range(0, len(shown), _PIECE)]
    for number, piece in enumerate(pieces, 1):
        counted = f" ({number}/{len(pieces)})" if len(pieces) > 1 else ""
        line = f"<{_PRIORITY}>blast-agent[{os.getpid()}]: {piece}{counted}"
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            out.sendto(line.encode(errors="replace"), str(log))


def said_by(environment: Mapping[str, str]) -> str:
    """For whom, as an SSH server tells it (sshd(8)): the user here, and the address that he came from."""
    client = environment.get("SSH_CONNECTION", "").partition(" ")[0] or "an unknown address"
    return f"user {os.geteuid()}, from {client}"
