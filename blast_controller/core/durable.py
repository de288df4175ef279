"""The core's persistent state: writing it as records and loading it from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter

import msgspec

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.journal.bodies import (
    encoded_layout,
    load_event,
    load_request,
    load_reservation,
    request_body,
    request_key,
    reservation_body,
)
from blast_controller.core.light.layout import Layout
from blast_controller.core.model.errors import FabricError
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.records import Body, Record
from blast_controller.core.model.requests import Request, RequestKey
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.quota import Quota
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests import event_log
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations

LAST_RESERVATION = "last reservation"
"""The highest reservation number ever used. Cookies on devices contain the numbers, so they are never reused. Group
addresses continue after their latest one as well, so that a late packet reaches no other group."""


class JournalWriter:
    """Changes of the core as records; `note_loaded` marks the state that is on disk already."""

    def __init__(self, table: RequestTable, reservations: Reservations) -> None:
        self._table = table
        self._reservations = reservations
        self._last_id = 0
        self._holdings: dict[int, frozenset[ElementId]] = {}
        self._layouts: dict[int, tuple[Layout, msgspec.Raw]] = {}

    def unwritten(self) -> Iterator[Record]:
        """Yield records of all changes since the last call.

        Releases of elements precede reservations of them, so that no element ever has two holders on
        disk.
        """
        yield from self._unwritten_reservations()
        for key, note in self._table.touched.items():
            request = self._table.requests.get(key)
            yield Record("request", request_key(key), request_body(request) if request else None, note=note)
        self._table.touched.clear()
        yield from self._table.log.take_records()

    def _unwritten_reservations(self) -> Iterator[Record]:
        live, touched = self._reservations.live, self._reservations.touched
        if not touched:
            return
        after = {n: live[n].elements if n in live else frozenset() for n in touched}
        for number in _givers_first(after, self._holdings):
            if number in live:
                self._holdings[number] = after[number]
                body = reservation_body(live[number], self._encoded(live[number]))
            else:
                self._holdings.pop(number, None)
                self._layouts.pop(number, None)
                body = None
            yield Record("reservation", str(number), body, after[number], touched[number])
        if self._reservations.last_id != self._last_id:
            self._last_id = self._reservations.last_id
            last = {"id": self._last_id, "next_group": self._reservations.addresses.next}
            yield Record("meta", LAST_RESERVATION, last)
        touched.clear()

    def _encoded(self, reservation: Reservation) -> msgspec.Raw:
        known = self._layouts.get(reservation.id)
        if known is None or known[0] is not reservation.layout:
            known = self._layouts[reservation.id] = reservation.layout, encoded_layout(reservation.layout)
        return known[1]

    def note_loaded(self, last_id: int) -> None:
        """Mark all live state as stored; `last_id` is the highest reservation number on disk."""
        self._last_id = last_id
        self._holdings = {n: r.elements for n, r in self._reservations.live.items()}


def _givers_first(after: Mapping[int, frozenset[ElementId]], before: Mapping[int, frozenset[ElementId]]) -> list[int]:
    """Return the reservations in an order in which each takes only elements that are free at that point."""
    holders = {element: number for number in after for element in before.get(number, ())}
    givers = {
        number: {holders[element] for element in elements if element in holders} - {number}
        for number, elements in after.items()
    }
    if not any(givers.values()):
        return list(after)
    # Pieces never change hands in a circle.
    return list(TopologicalSorter(givers).static_order())


class StateReader:
    """Takes over what an earlier run has left on disk."""

    def __init__(
        self,
        fabric: Fabric,
        inventory: Inventory,
        table: RequestTable,
        reservations: Reservations,
        writer: JournalWriter,
    ) -> None:
        self._fabric, self._inventory = fabric, inventory
        self._table, self._reservations, self._writer = table, reservations, writer

    def read(self, records: Iterable[Record], now: float) -> None:
        """Load requests, reservations and elements. Raises FabricError if the fabric lacks reserved elements."""
        last_id = 0
        # Events come after their requests.
        for record in sorted(records, key=lambda record: record.kind == event_log.KIND):
            if record.body is None:
                continue
            match record.kind:
                case "request":
                    request = load_request(record.body, now)
                    _check_hosts(request, self._fabric)
                    self._table.adopt(request, now)
                case event_log.KIND:
                    self._table.log.adopt(self._table.requests[_owner(record.body)], load_event(record.body))
                case "reservation":
                    self._reservations.adopt(load_reservation(record.body, self._fabric))
                case "element":
                    self._inventory.quarantine(ElementId(record.key), record.body["reason"])
                case "meta" if record.key == LAST_RESERVATION:
                    last_id = max(self._reservations.last_id, record.body["id"])
                    self._reservations.last_id, self._reservations.addresses.next = last_id, record.body["next_group"]
        self._writer.note_loaded(last_id)


class Resumption:
    """Lets go on what an earlier run has left."""

    def __init__(
        self, table: RequestTable, reservations: Reservations, agenda: Agenda, warm: WarmTrees, quota: Quota
    ) -> None:
        self._table, self._reservations, self._agenda = table, reservations, agenda
        self._warm, self._quota = warm, quota

    def resume(self, now: float) -> None:
        """Look at every request at the next decision, keep warm what was, and count what is lit."""
        self._agenda.look_again(self._table.requests)
        for reservation in list(self._reservations.live.values()):
            if reservation.state is ReservationState.IDLE:
                known = self._table.requests.get(reservation.request)
                self._warm.adopt(reservation, known.current if known else None, now)
            if reservation.layout.tree and reservation.state in (ReservationState.LIT, ReservationState.CHANGING):
                self._quota.lit(reservation.id, reservation.request[0], now)


def _owner(event: Body) -> RequestKey:
    tenant, key = event["request"]
    return tenant, key


def _check_hosts(request: Request, fabric: Fabric) -> None:
    """Raise FabricError unless the fabric has the hosts of a live request; an ended one needs none."""
    if not request.state.final:
        for host in (request.current.sender, *request.current.receivers):
            if host not in fabric.hosts:
                raise FabricError(
                    f"the journal has the request {request.current.key} for the host {host}, which is not in the "
                    "configuration"
                )
