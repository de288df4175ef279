"""Transcripts without passwords."""

from __future__ import annotations

MASK = b"********"


class Mask:
    """Replaces every occurrence of `secret` in a byte stream, also one that is cut across chunks.

    A chunk that ends with the beginning of the secret is held back in part until the next one, or `rest()`.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """`data` as it may be shown, less what could be the beginning of the secret."""
        if not self._secret:
            return data
        shown = (self._held + data).replace(self._secret, MASK)
        longest = min(len(self._secret) - 1, len(shown))
        keep = next((n for n in range(longest, 0, -1) if self._secret.startswith(shown[-n:])), 0)
        self._held = shown[len(shown) - keep :]
        return shown[: len(shown) - keep]

    def rest(self) -> bytes:
        """What was held back, once nothing follows."""
        held, self._held = self._held, b""
        return held
