"""How devices are brought to what a reservation wants of them: who was asked for what, and what came of it.

Theory of operation. A step is given to every device that has something to do, under one number. Such a device is a
target; it may be given more before the next step, under a number of its own, so that a late or second answer to what it
was asked before does not stand for that. The step is over when nobody has to answer any longer and no link is awaited;
what follows is for the reservation's own table to say.

| target | asked again | confirmed | failed | found done |
|---|---|---|---|---|
| asked | asked | done | failed | – |
| done | asked | – | – | – |
| failed | asked | – | – | done |

A device whose session began anew has failed what it was asked before. One that has done all and sees no light at some
outputs is done; those outputs are dark (`DarkLeaves`). A link is awaited until it comes up, or is overdue: then its
leaf is dark, too.
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
    """What can happen to it."""

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
class Target:
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
        """What it was asked to do."""
        return self.step.only(self.device)

    def take(self, event: TargetEvent) -> None:
        """Go where the table says. Raises ImpossibleTransition."""
        self.state = follow("target", TRANSITIONS, self.state, event)


@dataclass(slots=True)
class DarkLeaves:
    """Switch outputs of leaves without light: `seen` in the current step, `alarmed` while another thing was changed."""

    seen: set[int] = field(default_factory=set)
    alarmed: set[int] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.seen or self.alarmed)

    def connected(self, outputs: Iterable[int]) -> None:
        """A switch that can tell has seen light at these since."""
        self.alarmed.difference_update(outputs)

    def take(self) -> frozenset[int]:
        """All of them; from now on nobody has to be told of these."""
        found = frozenset(self.seen | self.alarmed)
        self.seen.clear()
        self.alarmed.clear()
        return found


@dataclass(slots=True)
class Rollout:
    """The steps of one reservation.

    `number` is that of the latest, `begun` that of the one that was given to all targets; `links` are those that are
    still to come up; `compute` is how many seconds were spent on the decision, where somebody has measured.
    """

    number: int = 0
    begun: int = 0
    targets: dict[Device, Target] = field(default_factory=dict)
    links: set[LinkId] = field(default_factory=set)
    dark: DarkLeaves = field(default_factory=DarkLeaves)
    compute: float | None = None

    # ------------------------------------------------------------------------------------------------ asking

    def begin(self, step: Step) -> int:
        """All targets are asked for their share of a step; its number."""
        self.number += 1
        self.begun = self.number
        self.targets = {device: Target(device, self.number, step) for device in step.devices}
        self.links = set()
        self.dark.seen.clear()
        return self.number

    def give(self, device: Device, share: Step) -> int:
        """One target is asked for something, in place of what it was asked before; the number of that."""
        self.number += 1
        target = self.targets.get(device)
        if target is None:
            target = self.targets[device] = Target(device, self.number, share)
        elif share.devices:
            target.take(_E.ASKED_AGAIN)
        else:
            # Nothing is left to do.
            target.take(_E.FOUND_DONE)
        target.number, target.step = self.number, share
        return self.number

    def serve_anew(self) -> None:
        """What is there serves somebody else, for whom nobody had to do anything."""
        self.compute = None
        for target in self.targets.values():
            target.elapsed = None

    # ----------------------------------------------------------------------------------------------- answers

    def asked(self, device: Device, number: int) -> Target | None:
        """The target that has still to answer this; None where nobody waits for such an answer."""
        target = self.targets.get(device)
        is_awaited = target is not None and target.state is _S.ASKED and target.number == number
        return target if is_awaited else None

    def confirmed(self, target: Target, elapsed: float) -> None:
        """A device has done its share, and seen light where it connected leaves, if it can see any."""
        target.take(_E.CONFIRMED)
        target.elapsed = elapsed
        self.dark.connected(circuit.output for circuit in target.share.connect)

    def confirmed_dark(self, target: Target, outputs: Set[int]) -> None:
        """A device has done its share, and sees no light at these outputs."""
        target.take(_E.CONFIRMED)
        self.dark.seen |= outputs

    def failed(self, target: Target, reason: str) -> None:
        """A device has not done its share; what it did of it is not known."""
        target.take(_E.FAILURE)
        target.reason = reason
        # The latest comes last, in what is said of them too.
        self.targets[target.device] = self.targets.pop(target.device)

    def found_done(self, device: Device) -> None:
        """What a device could not do turns out to be done."""
        self.targets[device].take(_E.FOUND_DONE)

    # ----------------------------------------------------------------------------------------------- looking

    @property
    def over(self) -> bool:
        """Whether nobody has to answer any longer, and no link is awaited."""
        return not self.links and all(target.state is not _S.ASKED for target in self.targets.values())

    @property
    def at_work(self) -> bool:
        """Whether a device still has to do something, or has failed to."""
        return bool(self.links) or any(target.state is not _S.DONE for target in self.targets.values())

    def waits_for(self, device: Device) -> bool:
        """Whether this device has still to answer."""
        target = self.targets.get(device)
        return target is not None and target.state is _S.ASKED

    def has_failed(self, device: Device) -> bool:
        """Whether this device has not done what it was asked last."""
        target = self.targets.get(device)
        return target is not None and target.state is _S.FAILED

    @property
    def waiting(self) -> list[Target]:
        """Those that have still to answer."""
        return [target for target in self.targets.values() if target.state is _S.ASKED]

    @property
    def failures(self) -> list[Target]:
        """Those that have failed, in the order in which they did."""
        return [target for target in self.targets.values() if target.state is _S.FAILED]

    @property
    def failure(self) -> str:
        """Why the latest step failed, as one sentence; empty if it did not."""
        return "; ".join(target.reason for target in self.failures)

    def refusals(self, away: Container[Device]) -> list[str]:
        """Why devices failed that are there: one that is away keeps what it holds, and is looked at when it returns."""
        return [target.reason for target in self.failures if target.device not in away]
