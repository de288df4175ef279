"""Loose synchronisation of the virtual output queues of a port by a small CAM (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blast_sim.fabric.trace import Kind, Reason
from tests.support.rack_fabric_port.constants import Constants
from tests.support.rack_fabric_port.events import Effect, Event, demand


@dataclass(slots=True)
class CamEntry:
    """How far a queue is ahead, and when its suspension, if it is suspended, ends at the latest."""

    packets_ahead: int = 0
    deadline: int | None = None


class SyncCam:
    """Entries by queue, the least recently used first."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._entries: dict[int, CamEntry] = {}

    def check(self, event: Event) -> None:
        """No suspension should have ended before this event."""
        for voq, entry in self._entries.items():
            demand(entry.deadline is None or event.time <= entry.deadline, event, f"queue {voq} is still suspended")

    def suspended(self, voq: int) -> bool:
        return voq in self._entries and self._entries[voq].deadline is not None

    def expire(self, voq: int, time: int) -> bool:
        """End a suspension for which it is time. False: there is none."""
        entry = self._entries.get(voq)
        if entry is None or entry.deadline != time:
            return False
        entry.deadline = None
        return True

    def ahead(self, voq: int, packets: int, time: int) -> list[Effect]:
        """A queue begins a frame of which other copies are still to be sent."""
        if not self._constants.sync:
            return []
        effects = [] if voq in self._entries else self._allocate(voq)
        self._touch(voq)
        entry = self._entries[voq]
        entry.packets_ahead += packets
        if entry.packets_ahead > self._constants.block and entry.deadline is None:
            entry.deadline = time + self._constants.timeout_ps
            effects.append(Effect(Kind.SUSPENDED, voq=voq, value=entry.packets_ahead))
        return effects

    def caught_up(self, senders: Iterable[int], packets: int) -> list[Effect]:
        """The last copy of a frame, which these queues have sent before, is begun or dropped."""
        return [effect for voq in senders if voq in self._entries for effect in self._caught_up_with(voq, packets)]

    def _touch(self, voq: int) -> None:
        self._entries[voq] = self._entries.pop(voq)

    def _allocate(self, voq: int) -> list[Effect]:
        effects = []
        if len(self._entries) >= self._constants.entries:
            effects = self._release(next(iter(self._entries)), Reason.RELEASED)
        self._entries[voq] = CamEntry()
        return [*effects, Effect(Kind.CAM_ALLOCATED, voq=voq)]

    def _caught_up_with(self, voq: int, packets: int) -> list[Effect]:
        entry = self._entries[voq]
        # An entry that was given up and allocated again has not counted this frame.
        entry.packets_ahead = max(0, entry.packets_ahead - packets)
        if entry.packets_ahead == 0:
            return self._release(voq, Reason.COUNT)
        if entry.packets_ahead < self._constants.resume:
            return self._resume(voq, entry, Reason.COUNT)
        return []

    def _release(self, voq: int, reason: Reason) -> list[Effect]:
        return [Effect(Kind.CAM_RELEASED, voq=voq), *self._resume(voq, self._entries.pop(voq), reason)]

    def _resume(self, voq: int, entry: CamEntry, reason: Reason) -> list[Effect]:
        if entry.deadline is None:
            return []
        entry.deadline = None
        return [Effect(Kind.RESUMED, voq=voq, value=reason)]
