"""Single things as a snapshot shows them. None of them ever changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from immutables import Map

from blast_controller.core.light.layout import Layout
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Grant, MulticastRequest, Part, Request, RequestKey, TransferReport
from blast_controller.core.policy.dark_reserve import DarkReserve
from blast_controller.core.policy.warm_trees import WarmCounts
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState


class PartFacts(NamedTuple):
    """A part of a request.

    `reason` is why it ended, lacks light, or failed its last attempt; `reached` is the number of bytes sent as last
    reported.
    """

    number: int
    state: PartState
    receivers: tuple[str, ...]
    reason: str | None
    lease_end: float | None
    grant: Grant | None
    report: TransferReport | None
    reached: int


class RequestFacts(NamedTuple):
    """A request; times on the core's clock; `latest_event` counts events, `arrival` numbers requests as they arrive."""

    current: MulticastRequest
    received_at: float
    arrival: int
    latest_event: int
    state: PartState
    parts: tuple[PartFacts, ...]

    @property
    def waiting(self) -> int:
        """Return the number of pending parts; explanations are computed on demand."""
        return sum(part.state is PartState.PENDING for part in self.parts)


def request_facts(request: Request) -> RequestFacts:
    """Return a request as it is now."""
    parts = tuple(_part_facts(part) for part in request.parts)
    return RequestFacts(
        request.current, request.received_at, request.arrival, request.latest_event, request.state, parts
    )


def _part_facts(part: Part) -> PartFacts:
    return PartFacts(
        part.index, part.state, part.receivers, part.reason, part.lease_end, part.grant, part.report, part.reached
    )


class TreeFacts(NamedTuple):
    """A reservation: the part that it serves, its state and its device state; `root` is its sender's rack."""

    reservation: int
    request: RequestKey
    part: int
    state: ReservationState
    group_address: str
    layout: Layout
    root: str


def tree_facts(reservation: Reservation, sender_rack: str) -> TreeFacts:
    """Return a reservation as it is now, whose sender is in this rack."""
    tree = reservation.layout.tree
    return TreeFacts(
        reservation.id,
        reservation.request,
        reservation.part,
        reservation.state,
        reservation.group_address,
        reservation.layout,
        # A tree that is kept lit may outlive what is known of its request.
        tree.root.rack if tree else sender_rack,
    )


class ElementStanding(NamedTuple):
    """The reservation (or PROBER) that holds an element, and why it is unusable."""

    holder: int | None
    unusable: str | None


FREE = ElementStanding(None, None)


@dataclass(frozen=True, slots=True)
class WarmFacts:
    """The number of warm trees, their counts, and the dark reserve by switch and fan-out."""

    trees: int
    counts: WarmCounts
    reserves: Map[tuple[SwitchId, int], DarkReserve]
