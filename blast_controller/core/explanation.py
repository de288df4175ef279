"""Explanation of a request's state: its blockers, its earliest start, and changes that let it start now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace

from blast_controller.core.explaining.availability import NEVER, Availability
from blast_controller.core.explaining.blocking_causes import BlockingCause, BlockingCauses, BlockingQuestion
from blast_controller.core.explaining.holdings import HeldResources
from blast_controller.core.explaining.prospect import Prospect, ProspectQuery, TreeSizes
from blast_controller.core.explaining.smallest_change import AdmissionChange, smallest_change
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Part, Request, RequestKey
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.wording import are, listed, moment
from blast_controller.core.policy.dispatcher import Dispatcher
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.requests.request_table import is_ungranted


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a request for a client.

    `blockers` lists each blocker; `start` is the earliest start in seconds from now if no lease is extended, None if it
    is unknown or no part is pending. `smallest_change` describes how to start now, and `leave_out` has the receivers
    that its first option removes.
    """

    key: str
    sentence: str
    blockers: tuple[str, ...] = ()
    start: float | None = None
    smallest_change: str | None = None
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wait:
    """The analysis of a pending part; `start` is on the core's clock."""

    part: Part
    start: float
    obstacles: tuple[BlockingCause, ...]
    change: AdmissionChange


class Explainer:
    """Explains requests to clients and operators. Changes nothing."""

    def __init__(
        self,
        holdings: HeldResources,
        orders: StandingOrders,
        limits: SplitterLimits,
        sizes: TreeSizes,
        dispatcher: Dispatcher,
    ) -> None:
        self._holdings, self._orders, self._limits = holdings, orders, limits
        self._sizes, self._dispatcher = sizes, dispatcher

    def explain(self, request: Request, now: float, viewer: str | None) -> Explanation:
        """Explain a request to a client of the tenant `viewer`, or (None) to an operator.

        A tenant sees holders of other tenants only as "another tenant", without name or number.
        """
        availability = Availability(self._holdings, self._orders, now)
        obstacles = BlockingCauses(self._holdings, self._orders, BlockingQuestion(request.current.id, viewer, now))
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
        wish = ProspectQuery(request.current, part.receivers)
        prospect = Prospect(wish, self._holdings.inventory.fabric, availability, self._limits, self._sizes)
        overdue = self._overdue_instead_of(request)
        change = smallest_change(prospect, light=not prospect.light_used_up and overdue is None)
        if len(request.parts) > 1:
            # A request that is served in several parts cannot be changed any more.
            change = replace(change, racks=(), receivers=())
        found = tuple(obstacles.of(prospect))
        if self._dispatcher.lacks_light((request.current.id, part.slot)) and not found:
            # By their number alone there would be enough splitters; which ones help is not foreseen.
            cause = "for splitters or ports that meet the power budget of every receiver"
            return _Wait(part, NEVER, (BlockingCause(cause, (part.reason or "",)),), change)
        return _Wait(part, prospect.start, found, change)

    def _overdue_instead_of(self, request: Request) -> RequestKey | None:
        """Return the other request for which free ports and splitters are reserved, if there is one."""
        name = self._dispatcher.kept_free_for
        pending = self._holdings.table.pending.values()
        others = (other.current.id for other, part in pending if (other.current.id, part.slot) == name)
        return next((other for other in others if other != request.current.id), None)

    def _outlook(self, request: Request, first: _Wait, now: float, viewer: str | None) -> Iterator[str]:
        """Yield sentences about the earliest start and precedence of other requests."""
        if first.start == NEVER:
            yield "The earliest start cannot be predicted."
        elif first.obstacles:
            yield f"The earliest start is {moment(first.start - now)}, if no lease is extended."
        if (overdue := self._overdue_instead_of(request)) is not None:
            yield f"Free ports and splitters are reserved for {_named(overdue, viewer)}, which is overdue."
        pending = (other for other, _ in self._holdings.table.pending.values() if other is not request)
        rivals = [other for other in pending if viewer in (None, other.current.tenant)]
        if rivals:
            parts = "part" if len(rivals) == 1 else "parts"
            yield f"{len(rivals)} other waiting {parts} {are(rivals)} considered as well."
        pending_timeout = request.current.pending_timeout
        if (
            pending_timeout is not None
            and is_ungranted(request)
            and request.received_at + pending_timeout <= first.start
        ):
            yield f"Its pending timeout expires earlier, {moment(request.received_at + pending_timeout - now)}."


def _sorted(request: Request) -> tuple[list[Part], list[Part]]:
    """Return the pending parts, and the others."""
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
    """Prefix a text with the part's number if the request has several parts."""
    return f"part {part.index}: {text}" if len(request.parts) > 1 else text


def _progress(part: Part, now: float) -> str:
    """Describe the state of a part that is not pending."""
    reason = f" ({part.reason.removesuffix('.')})" if part.reason else ""
    match part.state:
        case PartState.CONFIGURING:
            return f"is being set up{reason}"
        case PartState.ACTIVE:
            lease = "" if part.lease_end is None else f", its lease ends {moment(part.lease_end - now)}"
            return f"is active{lease}{reason}"
        case _:
            return f"is {part.state.value}{reason}"


def _min_margin(part: Part) -> str:
    """Describe the smallest power margin of an active part; empty without a power budget."""
    if part.grant is None or not part.grant.margins or part.state is not PartState.ACTIVE:
        return ""
    smallest = part.grant.margins[0]
    return (
        f", the smallest margin is at {smallest.rack} ({smallest.sensitivity:+.1f} dB to sensitivity, "
        f"{smallest.overload:+.1f} dB to overload; {smallest.binding} binds)"
    )


def _waits(wait: _Wait) -> str:
    causes = ", ".join(obstacle.cause for obstacle in wait.obstacles) or (
        "for the next scheduling pass: all required resources are free"
    )
    reason = f" (the last attempt failed: {wait.part.reason.removesuffix('.')})" if wait.part.reason else ""
    return f"waits {causes}{reason}"


def _advice(request: Request, change: AdmissionChange, viewer: str | None) -> str | None:
    """Describe the changes that let the request start now; None if it can only wait."""
    options = []
    if change.racks:
        name = "/".join(request.current.id) if viewer is None else request.current.key
        command = shlex.join(["blast", "extend", name, "--remove", ",".join(change.receivers)])
        options.append(f"remove the rack{'' if len(change.racks) == 1 else 's'} {listed(change.racks)}: `{command}`")
    if change.fan_out is not None:
        options.append(f"free one more 1:{change.fan_out} splitter")
    text = "; or ".join(options)
    return f"{text[0].upper()}{text[1:]}." if text else None
