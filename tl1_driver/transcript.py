"""Transcripts without passwords."""

from __future__ import annotations

MASK = b"********"
WRAPPING = b" \t\r\n\0\b"
"""Characters that a terminal inserts into an echo when it wraps a line."""

LONGEST_WRAPPING = 4096
"""Bytes between two pieces of a secret that a switch wraps over lines."""


class Mask:
    """A filter that replaces every occurrence of `secret` in a byte stream, also if it is cut across chunks or wrapped.

    Blanks and line ends are ignored in the comparison. If a chunk ends with the beginning of the secret, that part is
    held back until the next chunk, or `rest()`; a gap of more than `LONGEST_WRAPPING` bytes is not wrapping.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret.translate(None, WRAPPING)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return `data` with the secret masked, less a possible beginning of the secret at its end."""
        if not self._secret:
            return data
        text, self._held = self._held + data, b""
        places = [at for at, byte in enumerate(text) if byte not in WRAPPING]
        plain = bytes(text[at] for at in places)
        shown, at, after = [], 0, 0
        while (found := plain.find(self._secret, at)) >= 0:
            shown += [text[after : places[found]], MASK]
            at = found + len(self._secret)
            after = places[at - 1] + 1
        keep = self._beginning(plain[at:])
        held = places[len(plain) - keep] if keep else len(text)
        if len(text) - held <= LONGEST_WRAPPING + len(self._secret):
            self._held = text[held:]
            text = text[:held]
        return b"".join([*shown, text[after:]])

    def rest(self) -> bytes:
        """Return the bytes that were held back, at the end of the stream."""
        held, self._held = self._held, b""
        return held

    def _beginning(self, plain: bytes) -> int:
        """Return the number of bytes at the end of `plain` that could begin the secret."""
        longest = min(len(self._secret) - 1, len(plain))
        return next((count for count in range(longest, 0, -1) if self._secret.startswith(plain[-count:])), 0)
