"""The reserve of dark pieces, recounted from who holds what and from the fabric's own description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from blast_controller.core.controller import Core
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState

Kind = tuple[str, str]
"""(switch, what it is one of)"""


def pieces(core: Core) -> Iterator[tuple[str, Kind]]:
    """Every port and splitter in service, with its kind; a splitter counts with the legs that are good."""
    for rack in core.fabric.racks.values():
        for port in rack.optical_ports:
            yield port.element, (port.switch, port.end)
    for splitter in core.fabric.splitters.values():
        good = [leg for leg in splitter.outputs if splitter.leg_element(leg) not in core.view.quarantined]
        yield splitter.element, (splitter.switch, f"1:{len(good)}")


def recounted(core: Core) -> tuple[Counter[Kind], Counter[Kind]]:
    """How many pieces of each kind no transfer uses, and how many of these are dark or about to be."""
    idle: Counter[Kind] = Counter()
    dark: Counter[Kind] = Counter()
    states = {reservation.id: reservation.state for reservation in core.reservations}
    for element, kind in pieces(core):
        if core.view.unusable(element) is not None or kind[1] in ("1:0", "1:1"):
            continue
        state = states.get(core.view.holders.get(element, 0), ReservationState.GONE)
        if state in (ReservationState.GONE, ReservationState.RELEASING, ReservationState.IDLE):
            idle[kind] += 1
            dark[kind] += state is not ReservationState.IDLE
    return idle, dark


def counted(core: Core) -> tuple[Counter[Kind], Counter[Kind]]:
    """The same as the core counts it."""

    def named(counts: Mapping) -> Counter[Kind]:
        return Counter({(k.switch, k.end or f"1:{k.ways}"): number for k, number in counts.items()})

    return named(core.view.idle), named(core.view.dark)


def kept_lit(core: Core, kind: Kind, trusted: bool) -> list[Reservation]:
    """The trees that are kept lit and hold a piece of this kind, of groups that are trusted or are not."""
    of_kind = {element for element, its_kind in pieces(core) if its_kind == kind}
    idle = [r for r in core.reservations if r.state is ReservationState.IDLE and of_kind & r.elements]
    return [r for r in idle if (r.id in core.view.trusted) == trusted]


def is_left_alone(core: Core, switch: str) -> bool:
    """Whether nothing may give way on a switch now: it is away, or connects light for somebody."""
    lighting = (r for r in core.reservations if r.adding and r.rollout.waits_for(switch))
    return switch in core.view.away or any(lighting)


def has_fabric_to_itself(core: Core, now: float) -> bool:
    """Whether only one group was heard of for as long as trees are kept."""
    return now - core.view.alone_since > core.settings.keep_warm


def check_reserve(core: Core, now: float) -> None:
    """What the core counts is true, and the reserve is dark unless nothing is kept lit that could give way."""
    idle, dark = recounted(core)
    assert (idle, dark) == counted(core)
    share = core.settings.warm_reserve
    alone = core.settings.keep_warm > 0 and has_fabric_to_itself(core, now)
    for kind, number in idle.items() if share else ():
        if is_left_alone(core, kind[0]):
            continue
        if dark[kind] < max(1, int(share * number)):
            assert not kept_lit(core, kind, trusted=False), f"{kind}: a newcomer keeps it from being dark"
        if dark[kind] < int(share * number):
            assert alone or not kept_lit(core, kind, trusted=True), f"{kind}: {dark[kind]} dark of {number}"
