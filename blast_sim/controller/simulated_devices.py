"""Optical switches and ToRs on a virtual clock: they confirm commands after a delay and report their state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from blast_controller.core.model.commands import Forward, ReadDevice, SetCircuits, SetForwarding
from blast_controller.core.model.events import CircuitsObserved, Event, StepConfirmed, TableObserved
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, SwitchId
from blast_sim.base.virtual_clock import VirtualClock


class SimulatedSwitch:
    """An optical switch: one command at a time; commands that arrive meanwhile are executed together."""

    def __init__(self, name: SwitchId, clock: VirtualClock, delay: float, notify: Callable[[Event], None]) -> None:
        self._name, self._clock, self._delay, self._notify = name, clock, delay, notify
        self._queue: deque[SetCircuits | ReadDevice] = deque()
        self._circuits: set[CrossConnect] = set()
        self._busy = False

    def do(self, command: SetCircuits | ReadDevice) -> None:
        """Carry this out when what came before is done."""
        self._queue.append(command)
        if not self._busy:
            self._busy = True
            # All that comes at one moment goes out together.
            self._clock.at(self._clock.now, self._begin, late=True)

    def _begin(self) -> None:
        commands = list(self._queue)
        self._queue.clear()
        works = any(isinstance(command, SetCircuits) for command in commands)
        self._clock.at(self._clock.now + (self._delay if works else 0.0), partial(self._end, commands))

    def _end(self, commands: list[SetCircuits | ReadDevice]) -> None:
        for change in [
            change for command in commands if isinstance(command, SetCircuits) for change in command.changes
        ]:
            self._circuits.difference_update(change.disconnect)
            self._circuits.update(change.connect)
            self._notify(StepConfirmed(self._name, change.reservation, change.step, self._delay))
        if any(isinstance(command, ReadDevice) for command in commands):
            self._notify(CircuitsObserved(self._name, frozenset(self._circuits)))
        self._busy = bool(self._queue)
        if self._busy:
            self._begin()


class SimulatedTor:
    """A ToR: every command takes the same time, so that none overtakes another."""

    def __init__(
        self, datapath: DatapathId, clock: VirtualClock, delay: float, notify: Callable[[Event], None]
    ) -> None:
        self._datapath, self._clock, self._delay, self._notify = datapath, clock, delay, notify
        self._rules: set[tuple[int, Forward]] = set()

    def do(self, command: SetForwarding | ReadDevice) -> None:
        """Carry this out."""
        self._clock.at(self._clock.now + self._delay, partial(self._end, command))

    def _end(self, command: SetForwarding | ReadDevice) -> None:
        if isinstance(command, ReadDevice):
            self._notify(TableObserved(self._datapath, frozenset(self._rules), 0))
            return
        for change in command.changes:
            replaced = {forward.key for forward in (*change.remove, *change.add)}
            self._rules = {rule for rule in self._rules if rule[1].key not in replaced or rule[0] != change.reservation}
            self._rules |= {(change.reservation, forward) for forward in change.add}
            self._notify(StepConfirmed(self._datapath, change.reservation, change.step, self._delay))
