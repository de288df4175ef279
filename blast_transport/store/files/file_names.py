"""Names of files from the wire: paths that could lead out of a folder are rejected before anything is opened."""

from __future__ import annotations

import os

from blast_transport.base.errors import UnsafeNameError

PARTIAL_PREFIX = ".blast-"
"""Prefix of this program's temporary files."""
LONGEST_PART = 255
"""Bytes of one part of a name, as on most file systems."""
LONGEST_NAME = 1024
DEEPEST = 16
"""Parts of a name at most."""


def plain_name(name: str) -> str:
    """Return a plain base name. Raise UnsafeNameError for a name that could leave the directory."""
    outside = name in ("", ".", "..") or any(character in name for character in "/\\")
    if outside or not name.isprintable():
        raise UnsafeNameError(f"{name!r} is not a plain file name")
    if len(name.encode(errors="replace")) > LONGEST_PART:
        raise UnsafeNameError(f"a file name of more than {LONGEST_PART} bytes is not taken")
    if name.startswith(PARTIAL_PREFIX):
        raise UnsafeNameError(f"{name!r} begins like our own temporary files")
    return name


def checked_parts(name: str) -> list[str]:
    """Return the parts of a relative path from the wire. Raise UnsafeNameError."""
    if name.startswith("/"):
        raise UnsafeNameError(f"{shown(name)} is an absolute path: names are relative to a folder of the agent")
    if len(name) > LONGEST_NAME or len(os.fsencode(name.encode(errors="replace"))) > LONGEST_NAME:
        raise UnsafeNameError(f"the name {shown(name)} has more than {LONGEST_NAME} bytes")
    parts = name.split("/")
    if len(parts) > DEEPEST:
        raise UnsafeNameError(f"the name {shown(name)} has more than {DEEPEST} parts")
    for part in parts:
        _check_part(part, name)
    return parts


def _check_part(part: str, name: str) -> None:
    if part in ("", ".", ".."):
        raise UnsafeNameError(f"the name {shown(name)} has a part {part!r}, which names no file or folder of its own")
    if not part.isprintable():
        raise UnsafeNameError(f"the name {shown(name)} holds characters that cannot be printed")
    if len(part.encode()) > LONGEST_PART:
        raise UnsafeNameError(f"the name {shown(name)} has a part of more than {LONGEST_PART} bytes")
    if part.startswith(PARTIAL_PREFIX):
        raise UnsafeNameError(f"the name {shown(name)} begins like our own temporary files, with {PARTIAL_PREFIX}")


def shown(text: str) -> str:
    """Return a name in printable form: shortened, and without terminal control characters."""
    escaped = ascii(text)
    return escaped if len(escaped) <= 80 else f"{escaped[:77]}..."
