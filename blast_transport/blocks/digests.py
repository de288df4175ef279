"""Digests that verify data: one for each block, and one for the whole over the table of these.

Both are cryptographic, because datagrams can be forged, and a neighbor in a chain may send false data; only the table,
which arrives over the control connection, identifies the sender's blocks. BLAKE3, or SHA-256 where `blake3` is not
installed, cut to 16 bytes for a block: replacing a block requires a second preimage (2^128 trials, 2^101 against the
largest table). Two blocks with one digest (2^64) help only the author of the file that the sender sends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from blast_transport.base.errors import BrokenDigestError, WrongInputError

try:
    import blake3
except ImportError:  # A bare host has the standard library alone.
    blake3 = None  # type: ignore[assignment]

DIGEST_BYTES = 16
"""Finding another block with the digest of a given one takes 2**128 attempts."""
WHOLE_BYTES = 32
"""The full length of BLAKE3 and SHA-256."""

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Suite:
    """Two digests that belong together, under one `name`."""

    name: str
    block: Callable[[Buffer], bytes]
    whole: Callable[[Buffer], bytes]


def _sha256_block(data: Buffer) -> bytes:
    return hashlib.sha256(data).digest()[:DIGEST_BYTES]


def _sha256_whole(table: Buffer) -> bytes:
    return hashlib.sha256(table).digest()


SUITES: dict[str, Suite] = {"sha256": Suite("sha256", _sha256_block, _sha256_whole)}
"""Suites that this host can compute, by name."""

if blake3 is not None:
    SUITES["blake3"] = Suite(
        "blake3",
        # Without the interpreter's lock, in one thread: others have blocks of their own.
        lambda data: blake3.blake3(data).digest(length=DIGEST_BYTES),
        lambda table: blake3.blake3(table).digest(),
    )

BEST = "blake3" if "blake3" in SUITES else "sha256"
"""The fastest suite of this host."""

_BROKEN = frozenset({"xxh3"})
"""Suites of earlier versions that prove nothing."""


def suite_named(name: str) -> Suite:
    """Return the suite with this name. Raise BrokenDigestError if it is insecure, WrongInputError if unavailable."""
    if name in _BROKEN:
        raise BrokenDigestError(f"digests of {name} can be forged and are not accepted; update the sender")
    try:
        return SUITES[name]
    except KeyError:
        raise WrongInputError(
            f"the digests {name!r} cannot be computed here; install blake3, or choose sha256"
        ) from None


class DigestTable:
    """The digests of the blocks from the first on, as far as they are known, in any order."""

    __slots__ = ("_known", "_table")

    def __init__(self) -> None:
        self._table = bytearray()
        self._known = bytearray()

    def __contains__(self, block: int) -> bool:
        return block < len(self._known) and self._known[block] != 0

    def __getitem__(self, block: int) -> bytes:
        if block not in self:
            raise KeyError(block)
        return bytes(self._table[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES])

    def set(self, block: int, digest: bytes) -> None:
        """Note the digest of one block."""
        if block >= len(self._known):
            self._grow(block + 1)
        self._table[block * DIGEST_BYTES : (block + 1) * DIGEST_BYTES] = digest
        self._known[block] = 1

    def set_all(self, first: int, digests: bytes) -> None:
        """Note the digests of several blocks, one after the other in `digests`."""
        count = len(digests) // DIGEST_BYTES
        stop = first + count
        if stop > len(self._known):
            self._grow(stop)
        self._table[first * DIGEST_BYTES : stop * DIGEST_BYTES] = digests
        self._known[first:stop] = b"\x01" * count

    def differing(self, other: DigestTable, first: int, stop: int) -> list[int]:
        """Return the blocks from `first` to before `stop` whose digests in both tables differ."""
        found, stop = list[int](), min(stop, len(self._known))
        begin = self._known.find(1, first, stop)
        while begin >= 0:
            end = self._known.find(0, begin, stop)
            end = stop if end < 0 else end
            # Usually they are equal, which one comparison shows.
            if self.slice(begin, end) != other.slice(begin, end):
                both = (block for block in range(begin, end) if block in other)
                found += [block for block in both if self[block] != other[block]]
            begin = self._known.find(1, end, stop)
        return found

    def _grow(self, size: int) -> None:
        more = max(size, 2 * len(self._known)) - len(self._known)
        self._known += bytes(more)
        self._table += bytes(more * DIGEST_BYTES)

    def complete(self, blocks: int) -> bool:
        """Return whether the first `blocks` digests are all known."""
        return self._known.count(1, 0, blocks) == blocks

    def slice(self, first: int, stop: int) -> bytes:
        """Return the digests of these blocks, one after the other."""
        return bytes(self._table[first * DIGEST_BYTES : stop * DIGEST_BYTES])

    def whole(self, suite: Suite, blocks: int) -> bytes:
        """Return the digest of the whole: that of the table of `blocks` digests."""
        return suite.whole(self.slice(0, blocks))
