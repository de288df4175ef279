"""Rollout: bringing devices to the state that a reservation requires, and tracking their answers.

Theory of operation. A step is sent to every affected device under one number. Such a device is a target; it may receive
more before the next step, under a separate number, so that a late or second answer to an earlier command does not count
for it. The step is complete when no answer and no link is awaited; the reservation's state machine then decides what
follows.

| target | asked again | confirmed | failed | found done |
|---|---|---|---|---|
| asked | asked | done | failed | – |
| done | asked | – | – | – |
| failed | asked | – | – | done |

A new session of a device fails its earlier commands. A device that completed its share but sees no light at some
outputs is done; those outputs are dark (`DarkLeaves`). A link is awaited until it comes up or is overdue: then its leaf
is dark, too.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Set
from dataclasses import dataclass, field
from enum import Enum

from blast_controller.core.light.layout import Step
from blast_controller.core.model.identifiers import Device, LinkId
from blast_controller.core.model.tables import follow


class TargetState(Enum):
    """Where a device stands with what it was last asked."""

    ASKED = "asked"
    DONE = "done"
    FAILED = "failed"


class TargetEvent(Enum):
    """Events of a target."""

    ASKED_AGAIN = "asked again"
    CONFIRMED = "confirmed"
    FAILURE = "failure"
    FOUND_DONE = "found done"


_S, _E = TargetState, TargetEvent

TRANSITIONS: dict[tuple[TargetState, TargetEvent], TargetState] = {
    (_S.ASKED, _E.ASKED_AGAIN): _S.ASKED,
    (_S.ASKED, _E.CONFIRMED): _S.DONE,
    (_S.ASKED, _E.FAILURE): _S.FAILED,
    (_S.DONE, _E.ASKED_AGAIN): _S.ASKED,
    (_S.FAILED, _E.ASKED_AGAIN): _S.ASKED,
    (_S.FAILED, _E.FOUND_DONE): _S.DONE,
}


@dataclass(slots=True)
class RolloutTarget:
    """One device: the step whose share it was last asked for, under which number, and what came of it.

    `reason` is why it failed; `elapsed` how many seconds it took to confirm, the last time that it did.
    """

    device: Device
    number: int
    step: Step
    state: TargetState = TargetState.ASKED
    reason: str = ""
    elapsed: float | None = None

    @property
    def share(self) -> Step:
        """Return the device's share of the step."""
        return self.step.only(self.device)

    def take(self, event: TargetEvent) -> None:
        """Apply an event of the state machine. Raises ImpossibleTransitionError."""
        self.state = follow("target", TRANSITIONS, self.state, event)


@dataclass(slots=True)
class DarkLeaves:
    """Switch outputs of dark leaves: `seen` in the current step, `alarmed` during another change."""

    seen: set[int] = field(default_factory=set)
    alarmed: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.seen or self.alarmed)

    def connected(self, outputs: Iterable[int]) -> None:
        """Note that a measuring switch has seen light at these outputs since."""
        self.alarmed.difference_update(outputs)

    def take(self) -> frozenset[int]:
        """Return and clear all these outputs."""
        found = frozenset(self.seen | self.alarmed)
        self.seen.clear()
        self.alarmed.clear()
        return found


@dataclass(slots=True)
class Rollout:
    """The steps of one reservation.

    `number` is the latest one, `begun` the one sent to all targets; `links` are those still awaited; `compute` is the
    measured time of the decision in seconds, or None.
    """

    number: int = 0
    begun: int = 0
    targets: dict[Device, RolloutTarget] = field(default_factory=dict)
    links: set[LinkId] = field(default_factory=set)
    dark: DarkLeaves = field(default_factory=DarkLeaves)
    compute: float | None = None

    # ------------------------------------------------------------------------------------------------ asking

    def begin(self, step: Step) -> int:
        """Begin a step, for which all targets are asked for their shares; return its number."""
        self.number += 1
        self.begun = self.number
        self.targets = {device: RolloutTarget(device, self.number, step) for device in step.devices}
        self.links = set()
        self.dark.seen.clear()
        return self.number

    def give(self, device: Device, share: Step) -> int:
        """Command one target in place of its earlier commands; return the number of the command."""
        self.number += 1
        target = self.targets.get(device)
        if target is None:
            target = self.targets[device] = RolloutTarget(device, self.number, share)
        elif share.devices:
            target.take(_E.ASKED_AGAIN)
        else:
            # Nothing is left to do.
            target.take(_E.FOUND_DONE)
        target.number, target.step = self.number, share
        return self.number

    def reuse_circuits(self) -> None:
        """Reset for a new part that reuses the existing circuits: no device had to act."""
        self.compute = None
        for target in self.targets.values():
            target.elapsed = None

    # ----------------------------------------------------------------------------------------------- answers

    def asked(self, device: Device, number: int) -> RolloutTarget | None:
        """Return the target with this outstanding command, or None."""
        target = self.targets.get(device)
        is_awaited = target is not None and target.state is _S.ASKED and target.number == number
        return target if is_awaited else None

    def confirmed(self, target: RolloutTarget, elapsed: float) -> None:
        """Record that a device completed its share and saw light at new leaves, if it can measure."""
        target.take(_E.CONFIRMED)
        target.elapsed = elapsed
        if self.dark.alarmed:
            self.dark.connected(circuit.output for circuit in target.share.connect)

    def confirmed_dark(self, target: RolloutTarget, outputs: Set[int]) -> None:
        """Record that a device completed its share but sees no light at these outputs."""
        target.take(_E.CONFIRMED)
        self.dark.seen |= outputs

    def failed(self, target: RolloutTarget, reason: str) -> None:
        """Record that a device failed its share; its progress is unknown."""
        target.take(_E.FAILURE)
        target.reason = reason
        # Messages list failures in order of time.
        self.targets[target.device] = self.targets.pop(target.device)

    def found_done(self, device: Device) -> None:
        """Record that a failed share was found to be complete."""
        self.targets[device].take(_E.FOUND_DONE)

    # ----------------------------------------------------------------------------------------------- looking

    @property
    def over(self) -> bool:
        """Return true if no answer and no link is awaited."""
        return not (self.links or self.waiting)

    @property
    def at_work(self) -> bool:
        """Return true while a device still has to act or has failed."""
        return bool(self.links) or any(target.state is not _S.DONE for target in self.targets.values())

    def waits_for(self, device: Device) -> bool:
        """Return true if this device still has to answer."""
        target = self.targets.get(device)
        return target is not None and target.state is _S.ASKED

    def has_failed(self, device: Device) -> bool:
        """Return true if this device failed its latest command."""
        target = self.targets.get(device)
        return target is not None and target.state is _S.FAILED

    @property
    def waiting(self) -> list[RolloutTarget]:
        """Return the targets that still have to answer."""
        return [target for target in self.targets.values() if target.state is _S.ASKED]

    @property
    def failures(self) -> list[RolloutTarget]:
        """Return the failed targets in order of time."""
        return [target for target in self.targets.values() if target.state is _S.FAILED]

    @property
    def failure(self) -> str:
        """Return why the latest step failed, as one sentence; empty if it did not."""
        return "; ".join(target.reason for target in self.failures)

    def refusals(self, away: Container[Device]) -> list[str]:
        """Return why connected devices failed; a disconnected one keeps its state and is reconciled when it returns."""
        return [target.reason for target in self.failures if target.device not in away]
