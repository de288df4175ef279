"""Parameters of an optical phase."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.wire.fields import from_parameters
from blast_transport.wire.messages import Phase


@dataclass(frozen=True, slots=True)
class OpticalParameters:
    """The data comes to `group`:`port`, from the sender's `source`:`source_port` on the light path."""

    group: str
    port: int
    source: str
    source_port: int


def optical_parameters(phase: Phase) -> OpticalParameters:
    """Return the parameters of this phase. Raise RemoteProtocolError if they are invalid."""
    found = from_parameters(OpticalParameters, phase.parameters)
    if not all(0 < port < 1 << 16 for port in (found.port, found.source_port)):
        raise RemoteProtocolError("the optical Phase has a port out of range")
    if not _is_address(found.source):
        raise RemoteProtocolError("the optical Phase has no valid source address")
    return found


def _is_address(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET, text)
    except (OSError, ValueError):
        return False
    return True
