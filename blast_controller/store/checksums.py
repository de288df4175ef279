"""Digests that detect damage of a journal: a sum over its state, and a chain over its history.

The checks of SQLite and etcd find a broken page but not a changed value, and neither finds a missing row or commit.
Each commit writes, with its rows, the sum of the digests of all rows of the state (modulo 2^63: every changed, added or
removed row changes the sum, and a commit computes only its own changes), and the digest of its last entry, which
includes that of the previous entry. These detect damage, not forgery: an attacker who can write the rows can write the
digests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from zlib import crc32

MODULUS = 1 << 63
"""A digest is an integer of SQLite, which has 64 bits with a sign."""


def digest_of(*fields: object) -> int:
    """Return the digest of these texts and numbers."""
    # Not JSON, which takes three times as long; nor `repr`, which changes with the Unicode version of Python.
    return int.from_bytes(blake2b(ascii(fields).encode(), digest_size=8).digest()) % MODULUS


def body_digest(owner: int, kind: int, left: int, data: object) -> int:
    """Return the digest of a body of a recording, `left` of which follow from this one on."""
    return digest_of(owner, kind, left, crc32(data) if isinstance(data, bytes) else data)


def thing_digest(first: int, kind: str, key: str, body: str, elements: Iterable[str]) -> int:
    """Return the digest of a row of the state, with the elements that it holds."""
    return digest_of(first, kind, key, body, sorted(elements))


def chained(before: int, entry: Iterable[object]) -> int:
    """Return the digest of an entry of the history (all of its fields) that follows one with the digest `before`."""
    return digest_of(before, *entry)


@dataclass(slots=True)
class Sum:
    """The sum of the digests of rows."""

    total: int = 0

    def change(self, removed: Iterable[int], added: Iterable[int]) -> None:
        """Remove and add the digests of rows."""
        self.total = (self.total - sum(removed) + sum(added)) % MODULUS
