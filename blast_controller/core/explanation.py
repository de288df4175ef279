"""Why a request is where it is: what blocks it, when it could start, and what would free it now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from blast_controller.core.explaining.availability import NEVER, Availability
from blast_controller.core.explaining.blocking_causes import BlockingCause, BlockingCauses, Question
from blast_controller.core.explaining.holdings import Holdings
from blast_controller.core.explaining.prospect import Prospect, TreeSizes, Wish
from blast_controller.core.explaining.smallest_change import Change, smallest_change
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Part, Request, RequestKey
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.wording import are, listed, moment
from blast_controller.core.policy.dispatcher import Dispatcher
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.requests.request_table import is_ungranted


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a client is told about a request.

    `blockers` say one by one who or what is in the way; `start` is the earliest start in seconds from now, if leases
    end as they would now: None where that is not known, or nothing waits. `smallest_change` says how to have light
    now, and `leave_out` are the receivers that the first way to that does without.
    """

    key: str
    sentence: str
    blockers: tuple[str, ...] = ()
    start: float | None = None
    smallest_change: str | None = None
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wait:
    """What was found out about a part that waits; `start` on the core's clock."""

    part: Part
    start: float
    obstacles: tuple[BlockingCause, ...]
    change: Change


class Explainer:
    """Explains requests to clients and operators. Changes nothing."""

    def __init__(
        self,
        holdings: Holdings,
        orders: StandingOrders,
        limits: SplitterLimits,
        sizes: TreeSizes,
        dispatcher: Dispatcher,
    ) -> None:
        self._holdings, self._orders, self._limits = holdings, orders, limits
        self._sizes, self._dispatcher = sizes, dispatcher

    def explain(self, request: Request, now: float, viewer: str | None) -> Explanation:
        """Explain a request to a client of the tenant `viewer`, or (None) to an operator.

        What other tenants hold is told to a tenant as that of "another tenant", by no name and no number.
        """
        availability = Availability(self._holdings, self._orders, now)
        obstacles = BlockingCauses(self._holdings, self._orders, Question(request.current.id, viewer, now))
        pending, others = _sorted(request)
        waits = [self._examine(request, part, obstacles, availability) for part in pending]
        clauses = [_of_part(request, part, _progress(part, now) + _min_margin(part)) for part in others]
        clauses += [_of_part(request, wait.part, _waits(wait)) for wait in waits]
        sentences = [f"The request {request.current.key} {'; '.join(clauses)}."]
        if not waits:
            return Explanation(request.current.key, sentences[0])
        first = min(waits, key=lambda wait: wait.start)
        change = next((wait.change for wait in waits if wait.change.helps), first.change)
        return Explanation(
            key=request.current.key,
            sentence=" ".join([*sentences, *self._outlook(request, first, now, viewer)]),
            blockers=tuple(_of_part(request, wait.part, text) for wait in waits for text in _blockers(wait)),
            start=None if first.start == NEVER else first.start - now,
            smallest_change=_advice(request, change, viewer),
            leave_out=change.receivers,
        )

    def _examine(self, request: Request, part: Part, obstacles: BlockingCauses, availability: Availability) -> _Wait:
        wish = Wish(request.current, part.receivers)
        prospect = Prospect(wish, self._holdings.inventory.fabric, availability, self._limits, self._sizes)
        overdue = self._overdue_instead_of(request)
        change = smallest_change(prospect, light=not prospect.light_used_up and overdue is None)
        if len(request.parts) > 1:
            # A request that is served in several parts cannot be changed any more.
            change = replace(change, racks=(), receivers=())
        found = tuple(obstacles.of(prospect))
        if self._dispatcher.lacks_light((request.current.id, part.slot)) and not found:
            # By their number alone there would be enough splitters; which ones help is not foreseen.
            cause = "for splitters or ports with which every receiver gets its light"
            return _Wait(part, NEVER, (BlockingCause(cause, (part.reason or "",)),), change)
        return _Wait(part, prospect.start, found, change)

    def _overdue_instead_of(self, request: Request) -> RequestKey | None:
        """Return the other request for which free ports and splitters are reserved, if there is one."""
        name = self._dispatcher.kept_free_for
        pending = self._holdings.table.pending.values()
        others = (other.current.id for other, part in pending if (other.current.id, part.slot) == name)
        return next((other for other in others if other != request.current.id), None)

    def _outlook(self, request: Request, first: _Wait, now: float, viewer: str | None) -> Iterator[str]:
        """When it could start, and what may come before that."""
        if first.start == NEVER:
            yield "When it can start is not known."
        elif first.obstacles:
            yield f"It can start {moment(first.start - now)} at the earliest, if leases end as they are now."
        if (overdue := self._overdue_instead_of(request)) is not None:
            yield f"Free ports and splitters are reserved for {_named(overdue, viewer)}, which is overdue."
        pending = (other for other, _ in self._holdings.table.pending.values() if other is not request)
        rivals = [other for other in pending if viewer in (None, other.current.tenant)]
        if rivals:
            parts = "part" if len(rivals) == 1 else "parts"
            yield f"{len(rivals)} other waiting {parts} {are(rivals)} considered beside it."
        pending_timeout = request.current.pending_timeout
        if (
            pending_timeout is not None
            and is_ungranted(request)
            and request.received_at + pending_timeout <= first.start
        ):
            yield f"Its pending timeout expires before that, {moment(request.received_at + pending_timeout - now)}."


def _sorted(request: Request) -> tuple[list[Part], list[Part]]:
    """The parts that wait, and the others."""
    pending = [part for part in request.parts if part.state is PartState.PENDING]
    return pending, [part for part in request.parts if part.state is not PartState.PENDING]


def _named(name: RequestKey, viewer: str | None) -> str:
    """Name a request to a tenant, or (None) to an operator."""
    tenant, key = name
    if viewer is None:
        return f"{tenant}/{key}"
    return key if tenant == viewer else "a request of another tenant"


def _blockers(wait: _Wait) -> list[str]:
    return [blocker for obstacle in wait.obstacles for blocker in obstacle.blockers]


# ------------------------------------------------------------------------------------------------- sentences


def _of_part(request: Request, part: Part, text: str) -> str:
    """Say which part is meant, where there are several."""
    return f"part {part.index}: {text}" if len(request.parts) > 1 else text


def _progress(part: Part, now: float) -> str:
    """How far a part is that does not wait."""
    reason = f" ({part.reason.removesuffix('.')})" if part.reason else ""
    match part.state:
        case PartState.CONFIGURING:
            return f"is being lit{reason}"
        case PartState.ACTIVE:
            lease = "" if part.lease_end is None else f", its lease ends {moment(part.lease_end - now)}"
            return f"has light{lease}{reason}"
        case _:
            return f"is {part.state.value}{reason}"


def _min_margin(part: Part) -> str:
    """How well the worst lit receiver of a part is served, where losses are known."""
    if part.grant is None or not part.grant.margins or part.state is not PartState.ACTIVE:
        return ""
    least = part.grant.margins[0]
    return (
        f", the least margin is at {least.rack} ({least.sensitivity:+.1f} dB to sensitivity, "
        f"{least.overload:+.1f} dB to overload; {least.binding} binds)"
    )


def _waits(wait: _Wait) -> str:
    causes = ", ".join(obstacle.cause for obstacle in wait.obstacles) or "for its turn: all that it needs is free"
    reason = f" (the last attempt failed: {wait.part.reason.removesuffix('.')})" if wait.part.reason else ""
    return f"waits {causes}{reason}"


def _advice(request: Request, change: Change, viewer: str | None) -> str | None:
    """How to have light now, as a sentence; None where nothing but waiting helps."""
    ways = []
    if change.racks:
        name = "/".join(request.current.id) if viewer is None else request.current.key
        command = shlex.join(["blast", "extend", name, "--remove", ",".join(change.receivers)])
        ways.append(f"leave out the rack{'' if len(change.racks) == 1 else 's'} {listed(change.racks)}: `{command}`")
    if change.fan_out is not None:
        ways.append(f"have one more splitter 1:{change.fan_out} free")
    text = "; or ".join(ways)
    return f"{text[0].upper()}{text[1:]}." if text else None
