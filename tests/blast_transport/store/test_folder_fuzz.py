"""Fuzz tests of folder tables: the result is a safe table with the sent content, or a typed refusal."""

from __future__ import annotations

import random
import struct

from blast_transport.base.errors import RemoteProtocolError, UnsafeNameError
from blast_transport.store.files.folder_table import (
    HEAD_BYTES,
    MAGIC,
    MODE_BITS,
    EntryKind,
    FolderEntry,
    Table,
    check_path,
    decode,
    encode,
)
from tests.support.fuzzing import Decoder, fuzz, inputs
from tests.support.transport.transport_data import mutated

SEEDS = [
    encode(Table(0o755, ())),
    encode(Table(0o700, (FolderEntry(EntryKind.FILE, "a", 0o644, 10**18, 5),))),
    encode(
        Table(
            0o755,
            (
                FolderEntry(EntryKind.FOLDER, "d", 0o755, 1),
                FolderEntry(EntryKind.FILE, "d/f", 0o600, 2, 7),
                FolderEntry(EntryKind.LINK, "d/l", 0o777, 3, target="../e"),
                FolderEntry(EntryKind.LINK, "e", 0o777, 3, target="d/f"),
                FolderEntry(EntryKind.HARD_LINK, "h", 0o600, 2, target="d/f"),
            ),
        )
    ),
]
NAMES = [b"a", b"d", b"d/f", b"..", b"../x", b"/etc/passwd", b"d/../..", b"\xff", b"\n", b"", b"d//x", b"." * 300]


def changed(rng: random.Random, data: bytes) -> bytes:
    """Return the data with some bytes changed, usually with a head that has the new length."""
    stream = bytearray(mutated(rng, data, (0, 1, 2, 0x2E, 0x2F, 0xFF), NAMES))
    if len(stream) >= HEAD_BYTES and rng.random() < 0.7:
        struct.pack_into("<I", stream, HEAD_BYTES - 4, len(stream) - HEAD_BYTES)
    return bytes(stream)


def invented(rng: random.Random) -> bytes:
    """Return entries of the right form with random content."""
    body, count = b"", rng.randrange(5)
    for _ in range(count):
        path, target = rng.choice(NAMES), rng.choice([b"", b"", rng.choice(NAMES)])
        mode, size = rng.choice([0o644, 0o755, 0o4755]), rng.choice([0, 0, 9, 1 << 63])
        body += struct.pack("<BHqQHH", rng.choice([1, 2, 3, 3, 4, 9]), mode, 1, size, len(path), len(target))
        body += path + target
    return struct.pack("<8sHII", MAGIC, 0o755, count, len(body)) + body


def check(rng: random.Random, data: bytes) -> str:
    """Decode it."""
    try:
        table = decode(data)
    except (RemoteProtocolError, UnsafeNameError) as error:
        assert str(error).isprintable() and len(str(error)) < 400
        return "refused"
    assert encode(table) == data
    for entry in table.entries:
        check_path(entry.path)
        assert not entry.mode & ~MODE_BITS and not entry.target.startswith("/")
    return "understood"


TABLES = Decoder("folders", SEEDS, changed, invented, check, ("folder_table.py", "folder_links.py"))


def test_folder_tables_are_decoded_or_rejected() -> None:
    run = fuzz(TABLES, inputs(12_000))
    assert min(run.outcomes[name] for name in ("refused", "understood")) > run.inputs // 100, run.outcomes
