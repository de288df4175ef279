"""Texts as few bytes, and back; a sum finds what has been damaged.

xz makes the fewest bytes, and zstandard hardly more, of which ten times as many are read in a second: for what is read
by dozens to come to one moment.
"""

from __future__ import annotations

import lzma

import zstandard

MAX_BYTES = 64 << 20
"""The limit of an uncompressed text; writers stay far below."""
MAX_MEMORY = 128 << 20
_SOON, _LONG, _FAST = 0, 6, 19
"""The presets of xz for data rewritten within minutes and for permanent data, and the level of zstandard."""


class DecompressionError(ValueError):
    """Bytes that are no compressed text, or of one that is too long."""


def packed_soon(text: str) -> bytes:
    """Compress with little effort."""
    return _packed(text, _SOON)


def packed(text: str) -> bytes:
    """Compress to minimum size."""
    return _packed(text, _LONG)


def packed_for_speed(text: str) -> bytes:
    """Compress for fast decompression."""
    return zstandard.ZstdCompressor(level=_FAST, write_checksum=True).compress(_bytes(text))


def unpacked(data: bytes) -> str:
    """Return the text of compressed bytes. Raises DecompressionError, also if it is longer than MAX_BYTES."""
    try:
        found = _from_zstandard(data) if data.startswith(zstandard.FRAME_HEADER) else _from_xz(data)
        return found.decode("utf-8", "surrogatepass")
    except (lzma.LZMAError, zstandard.ZstdError, UnicodeDecodeError, EOFError) as error:
        raise DecompressionError(str(error)) from error


def _packed(text: str, preset: int) -> bytes:
    return lzma.compress(_bytes(text), lzma.FORMAT_XZ, lzma.CHECK_CRC32, preset)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _from_xz(data: bytes) -> bytes:
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
    found = reader.decompress(data, max_length=MAX_BYTES)
    if not reader.eof:
        raise DecompressionError("it is cut off, or too long")
    return found


def _from_zstandard(data: bytes) -> bytes:
    # Decompression allocates the memory that the frame declares.
    frame = zstandard.get_frame_parameters(data)
    if frame.content_size > MAX_BYTES:
        raise DecompressionError("it is too long")
    # `decompress` would trust a header that declares 0 bytes and ignore the data behind it.
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_MEMORY).decompressobj()
    found: bytes = reader.decompress(data)
    if not (frame.has_checksum and reader.eof) or reader.unused_data:
        raise DecompressionError("it is cut off, or its header is damaged")
    return found
