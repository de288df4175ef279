"""The expected view of a core for readers, built from its state alone, without earlier views."""

from __future__ import annotations

from collections import Counter, defaultdict

from immutables import Map

from blast_controller.core.controller import Core
from blast_controller.core.model.identifiers import ElementId, static_element
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.snapshot.facts import FREE, ElementStanding, WarmFacts, request_facts, tree_facts
from blast_controller.core.snapshot.request_index import BUNCH, RequestIndex
from blast_controller.core.snapshot.snapshot import Snapshot


def rebuilt_snapshot(core: Core) -> Snapshot:
    arrivals: defaultdict[int, dict[int, RequestKey]] = defaultdict(dict)
    for name, request in core.requests.items():
        arrivals[request.arrival // BUNCH][request.arrival] = name
    standings: defaultdict[str, dict[ElementId, ElementStanding]] = defaultdict(dict)
    units = units_of(core)
    for element in core.view.elements:
        standing = ElementStanding(core.view.holders.get(element), core.view.unusable(element))
        if standing != FREE:
            standings[units[element]][element] = standing
    return Snapshot(
        fabric=core.fabric,
        units=units,
        requests=RequestIndex(
            Map({name: request_facts(request) for name, request in core.requests.items()}),
            Map({bunch: Map(names) for bunch, names in arrivals.items()}),
            Map(Counter(name[0] for name, _ in core.view.waiting)),
            Map(Counter(request.state for request in core.requests.values())),
        ),
        standings=Map(standings),
        away=core.view.away,
        trees=Map({r.id: tree_facts(r, rack_of_sender(core, r)) for r in core.reservations}),
        warm=warm(core),
    )


def units_of(core: Core) -> dict[ElementId, str]:
    fabric = core.fabric
    units: dict[ElementId, str] = {p.element: p.rack for rack in fabric.racks.values() for p in rack.optical_ports}
    units |= {s.element: s.element for s in fabric.splitters.values()}
    units |= {s.output_element(output): s.element for s in fabric.splitters.values() for output in s.outputs}
    return units | {static_element(name): static_element(name) for name in fabric.static_trees}


def rack_of_sender(core: Core, reservation: Reservation) -> str:
    known = core.requests.get(reservation.request)
    return core.fabric.hosts[known.current.sender].rack if known else ""


def warm(core: Core) -> WarmFacts | None:
    if not (core.settings.keep_warm or core.view.kept_warm):
        return None
    reserves = Map({(s.switch, s.fan_out): s for s in core.view.reserves})
    return WarmFacts(core.view.kept_warm, core.view.warm_counts, reserves)
