"""What of the core must survive a restart: written as records, and taken over from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from blast_controller.core import probe_circuits
from blast_controller.core.errors import FabricError
from blast_controller.core.fabric import Fabric
from blast_controller.core.records import Record
from blast_controller.core.requests import Request
from blast_controller.core.reservation_states import ReservationState
from blast_controller.core.snapshot import load_request, load_reservation, request_body, request_key, reservation_body
from blast_controller.core.state import State

LAST_RESERVATION = "last reservation"
"""The highest number that a reservation ever had: numbers stand in cookies on devices and are not used again. The
group addresses go on behind its own, too, so that a late packet meets nobody."""


def unwritten(state: State) -> Iterator[Record]:
    """What has changed since the last call.

    What is gone comes first, so that its elements are free on disk before another takes them.
    """
    live, touched = state.reservations.live, state.reservations.touched
    for number in sorted(touched, key=lambda number: number in live):
        reservation = live.get(number)
        body = reservation_body(reservation) if reservation else None
        elements = frozenset(reservation.elements) if reservation else frozenset()
        yield Record("reservation", str(number), body, elements, touched[number])
    if state.reservations.last_id != state.written_id:
        state.written_id = state.reservations.last_id
        last = {"id": state.reservations.last_id, "next_group": state.ledger.next_group}
        yield Record("meta", LAST_RESERVATION, last)
    for key, note in state.book.touched.items():
        request = state.book.requests.get(key)
        yield Record("request", request_key(key), request_body(request) if request else None, note=note)
    touched.clear()
    state.book.touched.clear()


def restore(state: State, records: Iterable[Record], now: float) -> None:
    """Take over what an earlier run has left. Raises FabricError when the fabric no longer has what is lit."""
    for record in records:
        if record.body is None:
            continue
        match record.kind:
            case "request":
                request = load_request(record.body, now)
                _check_hosts(request, state.fabric)
                state.book.adopt(request, now)
            case "reservation":
                state.reservations.adopt(load_reservation(record.body, state.fabric))
            case "element":
                state.ledger.quarantine(record.key, record.body["reason"])
            case probe_circuits.KIND:
                state.probes.adopt(record.key, record.body)
            case "meta" if record.key == LAST_RESERVATION:
                state.reservations.last_id = max(state.reservations.last_id, record.body["id"])
                state.ledger.next_group = record.body["next_group"]
                state.written_id = state.reservations.last_id
    for reservation in state.reservations.live.values():
        if reservation.layout.tree and reservation.state in (ReservationState.LIT, ReservationState.CHANGING):
            state.quota.lit(reservation.id, reservation.request[0], now)
    state.appoint_audit(now)


def _check_hosts(request: Request, fabric: Fabric) -> None:
    """Whoever is over needs no hosts any longer. Raises FabricError."""
    if not request.state.final:
        for host in (request.current.sender, *request.current.receivers):
            if host not in fabric.hosts:
                raise FabricError(
                    f"the journal holds the request {request.current.key} for the host {host}, which the "
                    "configuration does not have"
                )
