"""State that remains after a session: its last messages, for a sender that reconnects and has not received them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from blast_transport.credentials.admission import AgentConnection
from blast_transport.wire.codec import encode
from blast_transport.wire.messages import Message

_SEND_SECONDS = 2.0
"""For a last message to a sender that may be gone."""


@dataclass(frozen=True, slots=True)
class SessionVerdict:
    """Last messages of an ended session, for its sender."""

    owner: bytes
    words: tuple[Message, ...]

    def rejoin(self, connection: AgentConnection) -> bool:
        """Send the messages; return whether the connection can carry a session."""
        with suppress(OSError):
            connection.sock.settimeout(_SEND_SECONDS)
            connection.sock.sendall(b"".join(map(encode, self.words)))
            connection.sock.settimeout(None)
            return True
        return False
