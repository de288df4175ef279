"""The journal commits of one request, and the time that they take alone.

The controller locks its journal, so the same records are written again to a second journal: the same kind of file in
the same folder, with the same durability.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from blast_api.ttypes import MulticastRequest
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.records import Record
from blast_controller.store.compaction import Compactor
from blast_controller.store.errors import JournalError
from blast_controller.store.interface import RESERVATION, Entry
from blast_controller.store.reader import LARGEST, JournalReader
from blast_controller.store.sqlite import SqliteStore
from mininet_topos.demo.stage import Stage
from mininet_topos.kernel.errors import DemoError

GRANTED = "granted"
_ROOM_BYTES = 2_000_000
"""The file grows before the measurement, so that commits do not extend it."""

Commit = tuple[Record, ...]


def commits_of(stage: Stage, request: MulticastRequest) -> list[Commit]:
    """Submit a request, finish it, and return the commits until its grant. Raises `DemoError`."""
    with _reporting_faults(), closing(JournalReader(stage.lab.journal)) as reader:
        before = max((entry.sequence for entry in reader.read(0, LARGEST)), default=0)
        with stage.granted(request) as grant:
            held = (ElementId(one.name) for one in stage.client.elements() if one.reservation == grant.reservation)
            elements = frozenset(held)
        return until_granted(reader.read(before, LARGEST), elements)


def until_granted(entries: Sequence[Entry], held: frozenset[ElementId]) -> list[Commit]:
    """Return the commits up to the one that grants; `held` are the elements of its reservation."""
    # Entries of one commit share its time.
    commits = []
    for _, together in groupby(entries, key=lambda entry: entry.at):
        found = list(together)
        commits.append(tuple(_record(entry, held) for entry in found))
        if any(entry.note == GRANTED for entry in found):
            break
    return commits


def renamed(commit: Commit, number: int) -> Commit:
    """Return the same commit for other keys: it replaces no record, as that of a new request."""
    return tuple(
        replace(
            one, key=f"{one.key}/{number}", elements=frozenset(ElementId(f"{name}/{number}") for name in one.elements)
        )
        for one in commit
    )


def _record(entry: Entry, held: frozenset[ElementId]) -> Record:
    elements = held if entry.kind == RESERVATION else frozenset[ElementId]()
    return Record(entry.kind, entry.key, entry.body, elements, entry.note)


class SeparateJournal:
    """A journal for these commits only. Raises `DemoError`."""

    def __init__(self, journal: Path) -> None:
        self._store = SqliteStore(journal.with_name(f"floor-{journal.name}"))
        with _reporting_faults():
            self._store.open()
            # A growing file makes every commit slower; the journal of a running controller has grown already.
            for body in ({"room": "." * _ROOM_BYTES}, None):
                self._store.commit([Record("meta", "room", body)], time.time())
            self._store.compact(time.time())
        self._faults: list[BaseException] = []
        self._compactor = Compactor(self._store, self._faults.append)
        self._compactor.start()

    def seconds(self, commit: Commit) -> float:
        """Return the seconds until a commit is durable. Raises `DemoError`."""
        started = time.perf_counter()
        with _reporting_faults():
            self._store.commit(commit, time.time())
        return time.perf_counter() - started

    def close(self) -> None:
        """Close the file; it is deleted with the lab."""
        self._compactor.stop()
        self._store.close()
        if self._faults:
            raise DemoError(f"the second journal failed: {self._faults[0]}")


@contextmanager
def _reporting_faults() -> Iterator[None]:
    try:
        yield
    except JournalError as fault:
        raise DemoError(f"the second journal failed: {fault}") from fault
