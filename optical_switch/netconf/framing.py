"""Messages in a stream of bytes, as RFC 6242 defines: ended by `]]>]]>`, or in chunks once both sides agree.

    end-of-message framing (base:1.0)    message ]]>]]>
    chunked framing (base:1.1)           LF # size LF data ... LF # # LF

Both sides begin with the first; after the hello messages they change to the second if both announce `base:1.1`. Bytes
that the peer sends after its hello may already be in chunks, so that messages are taken one at a time.
"""

from __future__ import annotations

import re

from optical_switch.errors import ProtocolError

END = b"]]>]]>"
MAX_MESSAGE = 4 << 20
"""Bytes of a received message: the configuration of a thousand ports with the longest labels has a tenth of it."""
MAX_HEADER = 13
"""Bytes of the start of a chunk: LF, #, ten digits (RFC 6242, section 4.2), LF."""

_CHUNK = re.compile(rb"\n#([1-9][0-9]{0,9})\n")
_LAST_CHUNK = b"\n##\n"


class FramingError(ProtocolError):
    """The received bytes are no framed messages, or a message is too long."""


def with_end(message: bytes) -> bytes:
    """Return a message in end-of-message framing.

    Parameters
    ----------
    message : bytes
        Message of NETCONF; XML that escapes `>` cannot contain the end mark.

    Returns
    -------
    bytes
        Bytes to send.
    """
    return message + END


def in_one_chunk(message: bytes) -> bytes:
    """Return a message in chunked framing.

    Parameters
    ----------
    message : bytes
        Message of NETCONF, not empty.

    Returns
    -------
    bytes
        Bytes to send.
    """
    return b"\n#%d\n%s%s" % (len(message), message, _LAST_CHUNK)


class NetconfDecoder:
    """A reader of messages from received bytes, in whatever pieces they arrive.

    Parameters
    ----------
    max_message : int
        Maximum number of bytes of a message.
    """

    def __init__(self, max_message: int = MAX_MESSAGE) -> None:
        self._max_message = max_message
        self._received = bytearray()
        self._message = bytearray()
        """The complete chunks of the message that is being received."""
        self._chunked = False
        self._searched = 0
        """Number of received bytes in which no end mark begins: searched once, or long messages cost quadratic time."""
        self._missing = 0
        """Bytes that the current chunk still lacks."""

    def feed(self, data: bytes) -> None:
        """Store received bytes; `next_message` reads them.

        Parameters
        ----------
        data : bytes
            Received bytes.
        """
        self._received += data

    def use_chunks(self) -> None:
        """Read the following messages in chunked framing."""
        self._chunked = True

    def next_message(self) -> bytes | None:
        """Return the next message.

        Returns
        -------
        bytes | None
            The message. None: more bytes are needed.

        Raises
        ------
        FramingError
            If the bytes are no messages, or a message is too long; then no message can be read any more.
        """
        return self._next_chunked() if self._chunked else self._next_ended()

    def _next_ended(self) -> bytes | None:
        at = self._received.find(END, self._searched)
        if at < 0:
            self._searched = max(0, len(self._received) - len(END) + 1)
            self._check_size(self._searched)
            return None
        self._check_size(at)
        message = bytes(self._received[:at])
        del self._received[: at + len(END)]
        self._searched = 0
        return message

    def _next_chunked(self) -> bytes | None:
        while True:
            if not self._take_data():
                return None
            if self._message and self._received.startswith(_LAST_CHUNK):
                message = bytes(self._message)
                self._message.clear()
                del self._received[: len(_LAST_CHUNK)]
                return message
            if not self._take_header():
                return None

    def _take_data(self) -> bool:
        """Move received bytes to the message; return false if the chunk is not complete."""
        taken = self._received[: self._missing]
        self._message += taken
        del self._received[: len(taken)]
        self._missing -= len(taken)
        return not self._missing

    def _take_header(self) -> bool:
        """Read the start of a chunk; return false if it is not complete."""
        header = _CHUNK.match(self._received)
        if header is None:
            if _may_become_header(bytes(self._received[: MAX_HEADER + 1]), bool(self._message)):
                return False
            raise FramingError("the switch sends no chunk of NETCONF where one must begin (RFC 6242)")
        self._missing = int(header[1])
        self._check_size(len(self._message) + self._missing)
        del self._received[: header.end()]
        return True

    def _check_size(self, size: int) -> None:
        if size > self._max_message:
            raise FramingError(f"the switch sends a message of more than {self._max_message} bytes")


def _may_become_header(start: bytes, may_be_last: bool) -> bool:
    """Return true if more bytes can make `start` the start of a chunk, or the end of a message."""
    if may_be_last and _LAST_CHUNK.startswith(start):
        return True
    return b"\n#".startswith(start) or re.fullmatch(rb"\n#[1-9][0-9]{0,9}", start) is not None
