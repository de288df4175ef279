"""Texts as few bytes, and back: xz, whose sum finds what has been damaged."""

from __future__ import annotations

import lzma

MOST_BYTES = 64 << 20
"""What a text may come to; whoever writes stays far below."""
MOST_MEMORY = 128 << 20
_SOON, _LONG = 0, 6
"""Presets: the first where it is done anew within a minute, the second for what stays (half the size, a millisecond of
the processor for a request)."""


class Unreadable(ValueError):
    """These are not the bytes of a text."""


def packed_soon(text: str) -> bytes:
    """At little effort."""
    return _packed(text, _SOON)


def packed(text: str) -> bytes:
    """As small as can be."""
    return _packed(text, _LONG)


def unpacked(data: bytes) -> str:
    """The text. Raises Unreadable, also of what would be too long."""
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    try:
        found = reader.decompress(data, max_length=MOST_BYTES)
        if not reader.eof:
            raise Unreadable("it is cut off, or too long")
        return found.decode("utf-8", "surrogatepass")
    except (lzma.LZMAError, UnicodeDecodeError, EOFError) as error:
        raise Unreadable(str(error)) from error


def _packed(text: str, preset: int) -> bytes:
    return lzma.compress(text.encode("utf-8", "surrogatepass"), lzma.FORMAT_XZ, lzma.CHECK_CRC32, preset)
