"""Requests and reservations round-trip through the journal's JSON, except for times, which start again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.journal.bodies import (
    event_body,
    load_event,
    load_request,
    load_reservation,
    request_body,
    request_key,
    reservation_body,
)
from blast_controller.core.light.layout import Layout, Step
from blast_controller.core.light.light_tree import build
from blast_controller.core.light.static_tree import light_of
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.errors import FabricError
from blast_controller.core.model.fabric import StaticTree
from blast_controller.core.model.identifiers import LinkId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import (
    EventKind,
    Grant,
    MulticastRequest,
    Part,
    Request,
    RequestEvent,
    Timings,
    TransferReport,
)
from blast_controller.core.rollout.change import Change, ChangePhase
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.rollout import DarkLeaves, Rollout, RolloutTarget, TargetState
from blast_controller.store.rows import decode, encode
from tests.support.controller.core import make_fabric
from tests.support.controller.layouts import FABRIC, changes

NOW = 1234.5
TREE = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 61}, frozenset({"r4h1"}))
WITH_STATIC = replace(FABRIC, static_trees={"t1": TREE})
EASY_TEXT = st.text(max_size=6)
TEXT = EASY_TEXT | st.just('a"\\\n/\u2028é')
NUMBER = st.floats(0.0, allow_infinity=False)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
TENANTS = st.from_regex(r"[A-Za-z0-9._-]{1,5}", fullmatch=True)

CONTENTS = st.builds(
    MulticastRequest,
    key=TEXT,
    tenant=TENANTS,
    sender=TEXT,
    receivers=NAMES,
    bytes=st.integers(1, 1 << 62),
    max_rate=st.none() | NUMBER,
    pending_timeout=st.none() | NUMBER,
)
GRANTS = st.builds(
    Grant,
    part=st.integers(0, 3),
    receivers=NAMES,
    group_address=TEXT,
    group_port=st.integers(0, 65535),
    rate=NUMBER,
    estimated_service=NUMBER,
    lease=NUMBER,
    first_byte=st.integers(0, 1 << 62),
    unserved=NAMES,
    reservation=st.integers(1, 1 << 31),
    timings=st.builds(Timings, st.none() | NUMBER, st.none() | NUMBER, st.none() | NUMBER, NUMBER),
)
PARTS = st.builds(
    Part,
    index=st.integers(0, 3),
    receivers=NAMES,
    state=st.sampled_from(PartState),
    reservation=st.none() | st.integers(1, 1 << 31),
    failures=st.integers(0, 9),
    reason=st.none() | TEXT,
    extra_lease=NUMBER,
    grant=st.none() | GRANTS,
    report=st.none()
    | st.builds(
        TransferReport,
        bytes_sent=st.none() | st.integers(0, 1 << 62),
        duration=st.none() | NUMBER,
        bytes_repaired=st.none() | st.integers(0, 1 << 62),
        failed_receivers=NAMES,
    ),
)
EVENTS = st.builds(
    RequestEvent,
    sequence=st.integers(1, 99),
    kind=st.sampled_from(EventKind),
    part=st.integers(0, 3),
    grant=st.none() | GRANTS,
    reason=st.none() | TEXT,
    state=st.none() | st.sampled_from(PartState),
)
REQUESTS = st.builds(
    Request,
    content=CONTENTS,
    current=CONTENTS,
    received_at=st.just(NOW),
    parts=st.lists(PARTS, min_size=1, max_size=3),
    latest_event=st.integers(0, 10**6),
    attached=st.booleans(),
)


def test_request_without_a_report_is_read() -> None:
    content = MulticastRequest("a", "default", "h1", ("h2",), 5)
    body = through_json(request_body(Request(content, content, NOW, [Part(0, ("h2",))])))
    del body["parts"][0]["report"]
    assert load_request(body, NOW).parts[0].report is None


@st.composite
def reservations(draw: st.DrawFn) -> Reservation:
    """Draw a reservation of a light tree, of rules only or of a static tree, possibly during a change."""
    before, after = draw(changes() | static_changes())
    reservation = Reservation(
        draw(st.integers(1, 1 << 31)),
        (draw(TENANTS), draw(TEXT)),
        draw(st.integers(0, 3)),
        "239.77.0.9",
        before,
        draw(st.sampled_from([s for s in ReservationState if s is not ReservationState.RELEASED])),
        rollout=Rollout(draw(st.integers(0, 99))),
    )
    if reservation.state is ReservationState.CHANGING:
        phase = draw(st.sampled_from(ChangePhase))
        reservation.change = Change(after, draw(CONTENTS), draw(NUMBER), phase, draw(st.none() | TEXT))
    return reservation


@st.composite
def static_changes(draw: st.DrawFn) -> tuple[Layout, Layout]:
    hosts = FABRIC.hosts
    some = st.lists(st.sampled_from(["r1h2", "r2h1", "r2h2", "r3h1", "r4h1"]), min_size=1, unique=True)
    rule = Forward(60, "10.0.1.1", "239.77.0.9", draw(st.sets(st.integers(1, 9)).map(lambda x: tuple(sorted(x)))))
    layouts = [
        Layout(tuple(names), light_of(TREE, hosts["r1h1"], [hosts[name] for name in names]), {2: (rule,)})
        for names in (draw(some), draw(some))
    ]
    return layouts[0], layouts[1]


def through_json(body):
    return decode(encode(body))


# ------------------------------------------------------------------------------------------------ round trips


@given(EVENTS, TENANTS, TEXT)
def test_any_event_round_trips(event, tenant, key):
    assert load_event(through_json(event_body((tenant, key), event))) == event


@given(REQUESTS)
def test_any_request_round_trips(request_):
    found = load_request(through_json(request_body(request_)), NOW)
    over = NOW if request_.state.final else None
    assert found == replace(request_, ended_at=over)
    assert encode(request_body(found)) == encode(request_body(request_)), "and again"


@given(reservations())
def test_any_reservation_round_trips(reservation):
    found = load_reservation(through_json(reservation_body(reservation)), WITH_STATIC)
    assert found == reservation
    assert found.layouts == reservation.layouts
    assert [type(x.tree) for x in found.layouts] == [type(x.tree) for x in reservation.layouts]
    assert found.intended == reservation.intended
    assert found.elements == reservation.elements
    assert encode(reservation_body(found)) == encode(reservation_body(reservation))


@given(reservations(), st.sets(st.sampled_from(["ocs1", 1, 2])))
def test_answers_of_devices_are_not_journaled(reservation, devices):
    """The devices answer again after a restart."""
    before = through_json(reservation_body(reservation))
    step = Step((), (), {}, {})
    targets = {device: RolloutTarget(device, 7, step, TargetState.FAILED, "denied", 1.0) for device in devices}
    reservation.rollout = Rollout(reservation.rollout.number, 7, targets, {LinkId(1, 50)}, DarkLeaves({3}, {4}), 0.1)
    assert through_json(reservation_body(reservation)) == before


@given(st.tuples(TENANTS, TEXT), st.tuples(TENANTS, TEXT))
def test_request_keys_are_unique(one, two):
    """Keys may contain anything; the names of tenants have no slash."""
    assert (request_key(one) == request_key(two)) == (one == two)


# --------------------------------------------------------------------------------------------------- cases


def test_lease_end_and_client_end_are_not_journaled():
    content = MulticastRequest("a", "default", "r1h1", ("r2h1",), 1)
    request = Request(content, content, 1.0, [Part(0, ("r2h1",), lease_end=99.0)], vanished_at=5.0)
    found = load_request(through_json(request_body(request)), NOW)
    assert (found.received_at, found.vanished_at, found.parts[0].lease_end) == (NOW, None, None)


def lit(fabric):
    ports = [fabric.racks[f"r{n}"].optical_ports[0] for n in (1, 2, 3)]
    tree = build(ports[0], ports[1:], [fabric.splitters["s1"]], loop_leaf=False)
    layout = Layout(("r2h1", "r3h1"), tree, {1: (Forward(1, "10.0.1.1", "239.77.0.1", (50,)),)})
    return through_json(reservation_body(Reservation(1, ("default", "a"), 0, "239.77.0.1", layout)))


def test_reservation_may_hold_a_splitter_without_its_bad_output():
    fabric = make_fabric(3, [4])
    whole = fabric.splitters["s1"]
    less = replace(whole, outputs=whole.outputs[1:])
    body = lit(replace(fabric, splitters={"s1": less}))
    assert load_reservation(body, fabric).layout.tree.splitters[0].splitter == less


@pytest.mark.parametrize(
    "spoil",
    [
        lambda fabric: replace(fabric, splitters={}),
        lambda fabric: replace(fabric, splitters={"s1": replace(fabric.splitters["s1"], input=99)}),
        lambda fabric: replace(fabric, splitters={"s1": replace(fabric.splitters["s1"], outputs=(4, 5, 6))}),
        lambda fabric: replace(fabric, splitters={"s1": replace(fabric.splitters["s1"], switch="ocs2")}),
        lambda fabric: replace(fabric, racks={n: r for n, r in fabric.racks.items() if n != "r1"}),
        lambda fabric: replace(fabric, racks={**fabric.racks, "r2": replace(fabric.racks["r2"], optical_ports=())}),
        lambda fabric: replace(fabric, racks={n: replace(r, datapath=r.datapath + 9) for n, r in fabric.racks.items()}),
    ],
    ids=["no splitter", "other input", "an output less", "other switch", "no rack", "no port", "other datapath"],
)
def test_held_elements_must_be_in_the_fabric(spoil):
    fabric = make_fabric(3, [4])
    body = lit(fabric)
    load_reservation(body, fabric)
    with pytest.raises(FabricError, match="the journal has"):
        load_reservation(body, spoil(fabric))
