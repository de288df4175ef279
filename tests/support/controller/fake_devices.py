"""Fake optical switches and ToRs, made of dictionaries, that enforce the constraints of real ones.

A switch joins an input to one output only; a ToR holds one rule per match and deletes only rules with the given cookie.
Both execute their commands in order, and both refuse a controller of an epoch older than the latest that they met.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from blast_controller.core.model.commands import Forward, ReadDevice, SetCircuits, SetForwarding
from blast_controller.core.model.fabric import CrossConnect

RuleKey = tuple[int, str, str]
Change = SetCircuits | SetForwarding


class SessionCutError(Exception):
    """The session ends in the middle of a command."""


@dataclass
class FakeDevice:
    """A device with its pending commands.

    `queue` has pending commands; `in_flight` has commands that ended sessions have left on the wire, each with the
    epoch of its controller; `fence` is the latest epoch whose controller has taken the device over.
    """

    queue: deque[Change | ReadDevice] = field(default_factory=deque, kw_only=True)
    in_flight: deque[tuple[int, Change]] = field(default_factory=deque, kw_only=True)
    fence: int = field(default=0, kw_only=True)
    up: bool = field(default=False, kw_only=True)

    def accepts(self, epoch: int) -> bool:
        """Return True if it accepts this epoch: a ToR by its generation, a switch by its session's owner."""
        return epoch >= self.fence

    def hang_up(self, epoch: int) -> None:
        """End the session of `epoch`; commands in transit may still arrive."""
        self.up = False
        self.in_flight += [(epoch, command) for command in self.queue if not isinstance(command, ReadDevice)]
        self.queue.clear()

    def take_over(self, epoch: int) -> None:
        """Start the session of a controller, which ends its earlier session."""
        self.up = True
        self.fence = max(self.fence, epoch)
        self.in_flight = deque(item for item in self.in_flight if item[0] != epoch)


@dataclass
class FakeSwitch(FakeDevice):
    """An optical switch: circuits by input; `foreign` are circuits that Blast did not make."""

    name: str
    circuits: dict[int, int] = field(default_factory=dict)
    foreign: set[CrossConnect] = field(default_factory=set)

    @property
    def held(self) -> frozenset[CrossConnect]:
        return frozenset(CrossConnect(self.name, i, o) for i, o in self.circuits.items())

    def disconnect(self, circuit: CrossConnect) -> None:
        if self.circuits.get(circuit.input) == circuit.output:
            del self.circuits[circuit.input]

    def connect(self, circuit: CrossConnect) -> str | None:
        """Connect a circuit. Return a refusal if the input or output is in use; an existing circuit counts as done."""
        if circuit in self.foreign:
            return "already connected"
        if self.circuits.get(circuit.input) == circuit.output:
            return None
        rivals = {c for c in self.held if c.input == circuit.input or c.output == circuit.output}
        ours = rivals - self.foreign
        assert not ours, f"{circuit} is to be made while our own {ours} is there"
        if rivals:
            return f"busy with {rivals}"
        self.circuits[circuit.input] = circuit.output
        return None


@dataclass
class FakeTor(FakeDevice):
    """A ToR: outputs and reservation by match, and the number of its foreign rules."""

    datapath: int
    rules: dict[RuleKey, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    foreign_rules: int = 0

    @property
    def held(self) -> frozenset[tuple[int, Forward]]:
        return frozenset((number, Forward(*key, outputs)) for key, (outputs, number) in self.rules.items())

    def remove(self, forward: Forward, reservation: int) -> None:
        if self.rules.get(forward.key, ((), None))[1] == reservation:
            del self.rules[forward.key]

    def add(self, forward: Forward, reservation: int) -> None:
        self.rules[forward.key] = (forward.outputs, reservation)


Operations = list[tuple[int, Callable[[], str | None]]]


def operations(device: FakeSwitch | FakeTor, command: Change) -> Operations:
    """Return the operations of a command at a device, as (position of the change, deed).

    A switch gets one delete and one connect for all changes, a ToR the changes one after the other.
    """
    going: Operations = []
    coming: Operations = []
    for position, change in enumerate(command.changes):
        if isinstance(device, FakeSwitch):
            going += [(position, partial(device.disconnect, c)) for c in change.disconnect]
            coming += [(position, partial(device.connect, c)) for c in change.connect]
        else:
            going += [(position, partial(device.remove, f, change.reservation)) for f in change.remove]
            going += [(position, partial(device.add, f, change.reservation)) for f in change.add]
    return going + coming
