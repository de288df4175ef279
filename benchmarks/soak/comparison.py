"""Journal, flow tables and cross-connects against each other: three accounts of the same light, each read by itself.

Pure: what was read comes in, the differences go out as sentences. No difference means that every reservation of the
journal has exactly its rules on the ToRs and its circuits on the optical switch, that the switches hold nothing else of
ours, and that the journal's requests and reservations name each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

AT_REST = ("lit", "idle")

Circuit = tuple[int, int]
"""Input and output of the optical switch."""


@dataclass(frozen=True, order=True, slots=True)
class Rule:
    """A forward on a ToR: whose it is, what it matches, where packets go."""

    datapath: int
    reservation: int
    in_port: int
    source: str
    group: str
    outputs: tuple[int, ...]

    def __str__(self) -> str:
        """For people."""
        ports = ",".join(map(str, self.outputs))
        return f"{self.source} -> {self.group} from port {self.in_port} to {ports} on datapath {self.datapath}"


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation of the journal, and what devices must hold for it."""

    number: int
    request: str
    state: str
    circuits: frozenset[Circuit]
    rules: frozenset[Rule]


@dataclass(frozen=True, slots=True)
class Journal:
    """The state that a restart would begin from; `served`: reservation of each active part to its request."""

    reservations: tuple[Reservation, ...]
    requests: frozenset[str]
    served: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class FlowTable:
    """What of a ToR's flow table concerns us. `strange`: rules for a group, or with our mark, that are no forwards."""

    rules: frozenset[Rule] = frozenset()
    guards: int = 0
    strange: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Readings:
    """The three accounts, read at rest. `flows` by datapath."""

    journal: Journal
    flows: Mapping[int, FlowTable]
    circuits: frozenset[Circuit] = field(default_factory=frozenset)


def differences(read: Readings) -> list[str]:
    """Every difference between the three, a sentence each; none where they agree."""
    return [*_in_the_journal(read.journal), *_on_tors(read), *_on_the_switch(read)]


def dark(read: Readings) -> list[str]:
    """What is still there where there should be no light at all, a sentence each."""
    rules = sorted(rule for table in read.flows.values() for rule in table.rules)
    return [
        *(f"reservation {one.number} of {one.request} is still {one.state}" for one in read.journal.reservations),
        *(f"the rule {rule} is still there" for rule in rules),
        *(f"the cross-connect {i}-{o} is still there" for i, o in sorted(read.circuits)),
    ]


def _in_the_journal(journal: Journal) -> Iterator[str]:
    numbers = {one.number for one in journal.reservations}
    for one in journal.reservations:
        if one.state not in AT_REST:
            yield f"reservation {one.number} of {one.request} is {one.state}, not at rest"
        if one.request not in journal.requests:
            yield f"reservation {one.number} is for {one.request}, which the journal does not know"
        if one.state == "lit" and one.number not in journal.served:
            yield f"reservation {one.number} is lit, and {one.request} has no active part with it"
    for number, request in sorted(journal.served.items()):
        if number not in numbers:
            yield f"{request} is active with reservation {number}, which the journal does not have"


def _on_tors(read: Readings) -> Iterator[str]:
    wanted = {rule for one in read.journal.reservations for rule in one.rules}
    held = {rule for table in read.flows.values() for rule in table.rules}
    yield from (f"the journal has the rule {rule}, and the ToR does not" for rule in sorted(wanted - held))
    yield from (f"the ToR has the rule {rule}, and the journal does not" for rule in sorted(held - wanted))
    for datapath, table in sorted(read.flows.items()):
        yield from (f"datapath {datapath} has a rule that nobody of ours writes: {line}" for line in table.strange)
        if not table.guards:
            yield f"datapath {datapath} has no guards"


def _on_the_switch(read: Readings) -> Iterator[str]:
    wanted = {circuit for one in read.journal.reservations for circuit in one.circuits}
    for i, o in sorted(wanted - read.circuits):
        yield f"the journal has the cross-connect {i}-{o}, and the optical switch does not"
    for i, o in sorted(read.circuits - wanted):
        yield f"the optical switch has the cross-connect {i}-{o}, and the journal does not"
