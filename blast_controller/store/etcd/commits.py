"""Changes of a commit in etcd: rows of the state, with the elements that they hold, and entries of the history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from blast_controller.store.checksums import Sum, thing_digest
from blast_controller.store.contents import Written
from blast_controller.store.errors import UnstorableError
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import delete, put
from blast_controller.store.etcd.values import LARGEST_VALUE, Head, batches, pack_thing
from blast_controller.store.retention import size_of
from blast_controller.store.rows import Row

Firsts = Mapping[tuple[str, str], int]
"""For each thing that is there, by kind and key, the sequence of the entry that inserted it."""

Digests = Mapping[tuple[str, str], int]
"""For each thing that is there, by kind and key, the digest of what is written of it."""


@dataclass(frozen=True, slots=True)
class Delta:
    """The changes of a commit.

    `kept` are the objects that it wrote and that exist after it, `removed` the objects that it removed.
    """

    kept: Mapping[tuple[str, str], tuple[int, Row]]
    removed: Mapping[tuple[str, str], int]
    entries: Sequence[Written]

    def operations(self, keys: Keys) -> Iterator[api.RequestOp]:
        """Yield etcd's operations, history first, so that a reader in between sees a complete prefix.

        Raises UnstorableError.
        """
        for last, value in batches(self.entries):
            entry = self.entries[last - self.entries[0].sequence]
            yield put(keys.history(last), _fitting(entry.kind, entry.key, value))
        for first in self.removed.values():
            yield delete(keys.state(first))
        for first, row in self.kept.values():
            yield put(keys.state(first), _fitting(row.kind, row.key, pack_thing(row)))

    def after(self, head: Head, digests: Digests, operations: Sequence[api.RequestOp]) -> Head:
        """Return the head after it; `digests` are those of the things that were there before, `operations` its own."""
        size = head.history_bytes + sum(size_of(entry.body) for entry in self.entries)
        state = Sum(head.state or 0)
        before = [digests[name] for name in {*self.removed, *self.kept} if name in digests]
        state.change(before, self.digests().values())
        last = self.entries[-1]
        count = (head.batches or 0) + len(operations) - len(self.removed) - len(self.kept)
        return replace(
            head, sequence=last.sequence, history_bytes=size, epoch=last.epoch, state=state.total, batches=count
        )

    def digests(self) -> dict[tuple[str, str], int]:
        """Return the digests of the kept objects."""
        return {
            name: thing_digest(first, *name, row.body or "", row.elements) for name, (first, row) in self.kept.items()
        }


def delta(rows: Sequence[Row], firsts: Firsts, newest: int, entry: tuple[float, int]) -> Delta:
    """Compute the changes of writing these rows in order.

    `entry` is the wall time and epoch of the history's entries.
    """
    kept: dict[tuple[str, str], tuple[int, Row]] = {}
    removed: dict[tuple[str, str], int] = {}
    entries = []
    for sequence, row in enumerate(rows, newest + 1):
        name = (row.kind, row.key)
        entries.append(Written(sequence, *entry, row.kind, row.key, row.note, row.body))
        if row.body is not None:
            first = kept[name][0] if name in kept else sequence if name in removed else firsts.get(name, sequence)
            kept[name] = (first, row)
            continue
        kept.pop(name, None)
        if name in firsts:
            removed[name] = firsts[name]
    return Delta(kept, removed, entries)


def _fitting(kind: str, key: str, value: bytes) -> bytes:
    if len(value) > LARGEST_VALUE:
        raise UnstorableError(kind, key, f"it takes {len(value)} bytes, and etcd {LARGEST_VALUE} under one key")
    return value
