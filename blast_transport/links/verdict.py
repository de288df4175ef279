"""What is left of a session that is over: the last words, for a sender that comes again and has not heard them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from blast_transport.credentials.admission import Connection
from blast_transport.wire.codec import encode
from blast_transport.wire.messages import Message

_FAREWELL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The last words of a session that is over, for its sender, if that has not heard them."""

    owner: bytes
    words: tuple[Message, ...]

    def rejoin(self, connection: Connection) -> bool:
        """Say them; whether the connection can carry a session."""
        with suppress(OSError):
            connection.sock.settimeout(_FAREWELL_SECONDS)
            connection.sock.sendall(b"".join(map(encode, self.words)))
            connection.sock.settimeout(None)
            return True
        return False
