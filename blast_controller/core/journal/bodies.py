"""Conversion of requests and reservations to and from JSON data for the journal.

Bodies contain flat dataclasses as they are: the store's encoder writes each as an object of its fields.

Times do not survive a restart, because the steady clock starts with the process: leases, pending timeouts and the
retention of ended requests restart with their full length.
"""

from __future__ import annotations

import msgspec

from blast_controller.core.light.layout import Layout
from blast_controller.core.light.light_tree import Leaf, LightTree, PlacedSplitter
from blast_controller.core.light.static_tree import StaticLight, goes_through
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.errors import FabricError
from blast_controller.core.model.fabric import Fabric, OpticalPort, Splitter
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.records import Body
from blast_controller.core.model.requests import (
    EventKind,
    Grant,
    LeafMargin,
    MulticastRequest,
    Part,
    Request,
    RequestEvent,
    RequestKey,
    Timings,
    TransferReport,
)
from blast_controller.core.rollout.change import Change, ChangePhase
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState


def request_key(request: RequestKey) -> str:
    """Return the journal's name of a request."""
    return "/".join(request)


# ------------------------------------------------------------------------------------------------ requests


def request_body(request: Request) -> Body:
    """Return a request with its parts; its events have bodies of their own."""
    return {
        "content": request.content,
        "current": request.current,
        "attached": request.attached,
        "parts": [_part_body(part) for part in request.parts],
        "latest_event": request.latest_event,
    }


def load_request(body: Body, now: float) -> Request:
    """Return the request of `request_body`, received `now`, without its events."""
    parts = [_load_part(part) for part in body["parts"]]
    request = Request(_load_content(body["content"]), _load_content(body["current"]), now, parts)
    request.attached = bool(body["attached"])
    request.latest_event = body["latest_event"]
    request.ended_at = now if request.state.final else None
    return request


def _load_content(body: Body) -> MulticastRequest:
    return MulticastRequest(**{**body, "receivers": tuple(body["receivers"])})


def _part_body(part: Part) -> Body:
    return {
        "index": part.index,
        "receivers": part.receivers,
        "state": part.state.value,
        "reservation": part.reservation,
        "failures": part.failures,
        "reason": part.reason,
        "extra_lease": part.extra_lease,
        "reached": part.reached,
        "chunk": part.chunk,
        "slot": part.slot,
        "slots": part.slots,
        "grant": part.grant,
        "report": part.report,
    }


def _load_part(body: Body) -> Part:
    return Part(
        index=body["index"],
        receivers=tuple(body["receivers"]),
        state=PartState(body["state"]),
        reservation=body["reservation"],
        failures=body["failures"],
        reason=body["reason"],
        extra_lease=body["extra_lease"],
        reached=body.get("reached", 0),
        chunk=body.get("chunk"),
        slot=body.get("slot", body["index"]),
        slots=body.get("slots", 1),
        grant=_load_grant(body["grant"]),
        report=_load_report(body.get("report")),
    )


def _load_report(body: Body | None) -> TransferReport | None:
    return None if body is None else TransferReport(**{**body, "failed_receivers": tuple(body["failed_receivers"])})


def _load_grant(body: Body | None) -> Grant | None:
    if body is None:
        return None
    return Grant(
        **{
            **body,
            "receivers": tuple(body["receivers"]),
            "unserved": tuple(body["unserved"]),
            "timings": Timings(**body["timings"]),
            "margins": tuple(LeafMargin(**margin) for margin in body.get("margins", ())),
        }
    )


def event_body(request: RequestKey, event: RequestEvent) -> Body:
    """Return the body of an event."""
    return {
        "request": request,
        "sequence": event.sequence,
        "kind": event.kind.value,
        "part": event.part,
        "grant": event.grant,
        "reason": event.reason,
        "state": event.state.value if event.state else None,
    }


def load_event(body: Body) -> RequestEvent:
    """Return the event of `event_body`."""
    state = PartState(body["state"]) if body["state"] else None
    return RequestEvent(
        body["sequence"], EventKind(body["kind"]), body["part"], _load_grant(body["grant"]), body["reason"], state
    )


# -------------------------------------------------------------------------------------------- reservations


def reservation_body(reservation: Reservation, layout: msgspec.Raw | None = None) -> Body:
    """Return a reservation, whose layout may be encoded already.

    The answers of devices are not kept, for they are asked again.
    """
    change = reservation.change
    return {
        "id": reservation.id,
        "request": reservation.request,
        "part": reservation.part,
        "group_address": reservation.group_address,
        "state": reservation.state.value,
        "step": reservation.rollout.number,
        "layout": layout or encoded_layout(reservation.layout),
        "handed_over": sorted(reservation.handed_over),
        "left_behind": reservation.left_behind,
        "unlit": reservation.unlit,
        "change": None
        if change is None
        else {
            "target": encoded_layout(change.target),
            "request": change.request,
            "extra_lease": change.extra_lease,
            "phase": change.phase.value,
            "refusal": change.refusal,
        },
    }


def load_reservation(body: Body, fabric: Fabric) -> Reservation:
    """Load a reservation from its body. Raises FabricError if the fabric no longer has its elements."""
    tenant, key = body["request"]
    reservation = Reservation(
        body["id"], (tenant, key), body["part"], body["group_address"], _load_layout(body["layout"], fabric)
    )
    reservation.state = ReservationState(body["state"])
    reservation.rollout.number = body["step"]
    reservation.handed_over = set(body.get("handed_over", ()))
    reservation.left_behind = body.get("left_behind", False)
    reservation.unlit = body.get("unlit", False)
    if (change := body["change"]) is not None:
        reservation.change = Change(
            _load_layout(change["target"], fabric),
            _load_content(change["request"]),
            change["extra_lease"],
            ChangePhase(change["phase"]),
            change["refusal"],
        )
    return reservation


def encoded_layout(layout: Layout) -> msgspec.Raw:
    """Return a layout as JSON: it is the largest part of a reservation, and most changes leave it as it is."""
    tree = layout.tree
    body = {
        "receivers": layout.receivers,
        "tree": None
        if tree is None
        else {
            "static": tree.name if isinstance(tree, StaticLight) else None,
            "root": tree.root,
            "splitters": [_with_feed(hung.splitter, hung.feed) for hung in tree.splitters],
            "leaves": [_with_feed(leaf.port, leaf.feed) for leaf in tree.leaves],
        },
        "forwards": layout.forwards,
    }
    return msgspec.Raw(msgspec.json.encode(body))


def _with_feed(piece: Splitter | OpticalPort, feed: int | None) -> Body:
    return {**{name: getattr(piece, name) for name in piece.__dataclass_fields__}, "feed": feed}


def _load_layout(body: Body, fabric: Fabric) -> Layout:
    forwards = {
        DatapathId(int(datapath)): tuple(Forward(**{**f, "outputs": tuple(f["outputs"])}) for f in found)
        for datapath, found in body["forwards"].items()
    }
    if strange := forwards.keys() - {rack.datapath for rack in fabric.racks.values()}:
        raise FabricError(
            f"the journal has rules on the datapath {min(strange):016x}, which is not in the configuration"
        )
    return Layout(tuple(body["receivers"]), _load_tree(body["tree"], fabric), forwards)


def _load_tree(body: Body | None, fabric: Fabric) -> LightTree | None:
    if body is None:
        return None
    if body["static"] is not None:
        return _load_static(body, fabric)
    return LightTree(
        _load_port(body["root"], fabric),
        tuple(PlacedSplitter(_load_splitter(s, fabric), s["feed"]) for s in body["splitters"]),
        tuple(Leaf(_load_port(leaf, fabric), leaf["feed"]) for leaf in body["leaves"]),
    )


def _load_static(body: Body, fabric: Fabric) -> StaticLight:
    leaves = tuple(Leaf(_any_port(leaf), leaf["feed"]) for leaf in body["leaves"])
    light = StaticLight(_any_port(body["root"]), (), leaves, body["static"])
    declared = fabric.static_trees.get(light.name)
    if declared is None or not goes_through(declared, light):
        raise FabricError(
            f"the journal has a reservation of the static tree {light.name}, which is missing or different in the "
            "configuration"
        )
    return light


def _any_port(body: Body) -> OpticalPort:
    return OpticalPort(**{name: body[name] for name in OpticalPort.__dataclass_fields__})


def _load_port(body: Body, fabric: Fabric) -> OpticalPort:
    port = _any_port(body)
    rack = fabric.racks.get(port.rack)
    if rack is None or port not in rack.optical_ports:
        raise FabricError(
            f"the journal has a reservation of {port.element}, which is missing or different in the configuration"
        )
    return port


def _load_splitter(body: Body, fabric: Fabric) -> Splitter:
    splitter = Splitter(body["name"], body["switch"], body["input"], tuple(body["outputs"]))
    declared = fabric.splitters.get(splitter.name)
    # A output that was quarantined when the tree was built is not in it.
    if declared is None or splitter != declared.without(
        lambda output: output not in {splitter.output_element(o) for o in splitter.outputs}
    ):
        raise FabricError(
            f"the journal has a reservation of {splitter.element}, which is missing or different in the configuration"
        )
    return splitter
