"""Content, stores and digests for tests of the nodes of a pipeline."""

from __future__ import annotations

import random
import secrets
from contextlib import suppress
from pathlib import Path

from blast_transport.blocks.digests import BEST, SUITES
from blast_transport.blocks.layout import BlockLayout
from blast_transport.store.blocks.block_store import BlockStore
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.file_target import FileTarget, open_directory
from blast_transport.store.targets.memory_target import MemoryTarget
from tests.support.transport.engines import asked_engine, checked_store

SEGMENT = 1456
SUITE = SUITES[BEST]


def content_of(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def file_store(directory: Path, name: str, size: int | None) -> BlockStore:
    directory.mkdir(exist_ok=True)
    layout = BlockLayout(size, SEGMENT)
    target = FileTarget(open_directory(directory), directory, name, size, secrets.token_hex(8))
    return checked_store(asked_engine(), layout, target)


def memory_store(size: int | None) -> SessionStore:
    return SessionStore(BlockLayout(size, SEGMENT), SUITE, MemoryTarget("memory", 1 << 30))


def digests_of(content: bytes) -> bytes:
    block = BlockLayout(len(content), SEGMENT).block_size
    return b"".join(SUITE.block(content[start : start + block]) for start in range(0, len(content), block))


def finish(store: SessionStore, content: bytes) -> bool:
    """Finish a session as the store does: check the digests and complete the file."""
    digests = digests_of(content)
    store.finish_size(len(content))
    if digests:
        store.expect(0, digests)
    if not store.complete:
        store.discard()
        return False
    store.commit(SUITE.whole(digests))
    return True


def open_descriptors() -> set[str]:
    """Return the open descriptors, each socket and pipe with its own number."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(entry.readlink()))
    return found
