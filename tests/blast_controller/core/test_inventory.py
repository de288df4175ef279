"""Incremental counts of the inventory against full counts from a model of all events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.inventory.holders import PROBER, DoubleBookingError, Holders, HolderState
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.kinds import Piece, PieceKind, kind_of
from blast_controller.core.model.errors import ImpossibleTransitionError
from blast_controller.core.model.fabric import CrossConnect, OpticalPort, Splitter
from tests.support.controller.core import by_sides, make_fabric

FABRIC = make_fabric(racks=4, splitters=(4, 2, 4, 3), ports=2, switches=2, shared=2)
FABRICS = [FABRIC, by_sides(FABRIC)]
RESERVATIONS = (1, 2, 3)
DEVICES = [*FABRIC.switches, *{rack.datapath for rack in FABRIC.racks.values()}]
PAIRS = st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), max_size=3)


@dataclass
class Truth:
    """A model of the inventory, by element and by holder; `given` has the pieces as the policy allocated them."""

    holder: dict = field(default_factory=dict)
    lit: set = field(default_factory=set)
    leaving: set = field(default_factory=set)
    quarantined: set = field(default_factory=set)
    away: set = field(default_factory=lambda: set(DEVICES))
    foreign: dict = field(default_factory=dict)
    given: dict = field(default_factory=dict)

    def standing(self, element) -> HolderState:
        holder = self.holder.get(element)
        if holder is None:
            return HolderState.FREE
        if holder == PROBER:
            return HolderState.PROBED
        if element in self.lit:
            return HolderState.KEPT_LIT
        return HolderState.LEAVING if holder in self.leaving else HolderState.HELD

    def usable(self, piece: Piece) -> Piece | None:
        touched = {(c.switch, side, n) for found in self.foreign.values() for c in found for side, n in sides_of(c)}
        if isinstance(piece, OpticalPort):
            ends = {(piece.switch, "in", piece.input), (piece.switch, "out", piece.output)}
            return None if piece.element in self.quarantined or ends & touched else piece
        ends = {(piece.switch, "out", piece.input), *((piece.switch, "in", output) for output in piece.outputs)}
        left = piece.without(self.quarantined.__contains__)
        return None if piece.element in self.quarantined or ends & touched or left.fan_out < 2 else left

    def present(self, fabric, piece: Piece) -> bool:
        needed = {piece.switch}
        if isinstance(piece, OpticalPort):
            needed.add(fabric.racks[piece.rack].datapath)
        return not needed & self.away

    def is_available(self, fabric, piece: Piece) -> bool:
        to_be_had = self.standing(piece.element) in (HolderState.FREE, HolderState.KEPT_LIT)
        return to_be_had and self.usable(piece) is not None and self.present(fabric, piece)


def sides_of(circuit: CrossConnect):
    return (("in", circuit.input), ("out", circuit.output))


def pieces_of(fabric) -> list[Piece]:
    return [*(port for rack in fabric.racks.values() for port in rack.optical_ports), *fabric.splitters.values()]


def held_by(truth: Truth, number: int, *standings: HolderState):
    return [e for e, holder in truth.holder.items() if holder == number and truth.standing(e) in standings]


def act(data: st.DataObject, fabric, inventory: Inventory, truth: Truth) -> None:
    """Apply a random action to the inventory and to the model."""
    data.draw(st.sampled_from([take, take, probe, free, keep, reclaim, release, forget, *CONDITIONS]))(
        data, inventory, truth
    )
    record_offers(fabric, truth)


def take(data: st.DataObject, inventory: Inventory, truth: Truth, number: int | None = None) -> None:
    number = data.draw(st.sampled_from(RESERVATIONS)) if number is None else number
    elements = [e for e in inventory.elements if not e.startswith(("static:", "output:"))]
    some = [e for e in data.draw(st.lists(st.sampled_from(elements), max_size=4)) if e not in truth.holder]
    inventory.take(some, number)
    truth.holder |= dict.fromkeys(some, number)


def probe(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    take(data, inventory, truth, PROBER)


def free(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    holder = data.draw(st.sampled_from([*RESERVATIONS, PROBER]))
    some = held_by(truth, holder, HolderState.HELD, HolderState.LEAVING, HolderState.PROBED)
    inventory.free(some)
    for element in some:
        del truth.holder[element]


def keep(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    some = held_by(truth, data.draw(st.sampled_from(RESERVATIONS)), HolderState.HELD)
    inventory.keep_lit(some)
    truth.lit |= set(some)


def reclaim(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    some = held_by(truth, data.draw(st.sampled_from(RESERVATIONS)), HolderState.KEPT_LIT)
    inventory.reclaim(some)
    truth.lit -= set(some)


def release(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    number = data.draw(st.sampled_from(RESERVATIONS))
    truth.leaving.add(number)
    truth.lit -= set(held_by(truth, number, HolderState.KEPT_LIT))
    inventory.release(number, held_by(truth, number, HolderState.LEAVING))


def forget(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    number = data.draw(st.sampled_from(RESERVATIONS))
    if number not in truth.holder.values():
        truth.leaving.discard(number)
        inventory.forget(number)


def quarantine(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    element = data.draw(st.sampled_from(inventory.elements))
    inventory.quarantine(element, "dirty")
    truth.quarantined.add(element)


def lift(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    element = data.draw(st.sampled_from(inventory.elements))
    assert inventory.lift_quarantine(element) == (element in truth.quarantined)
    truth.quarantined.discard(element)


def lose(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    device = data.draw(st.sampled_from(DEVICES))
    inventory.note_away(device, "gone")
    truth.away.add(device)


def regain(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    device = data.draw(st.sampled_from(DEVICES))
    inventory.note_back(device)
    truth.away.discard(device)


def connect(data: st.DataObject, inventory: Inventory, truth: Truth) -> None:
    switch = data.draw(st.sampled_from(FABRIC.switches))
    by_output = {c.output: c for c in (CrossConnect(switch, *pair) for pair in data.draw(PAIRS))}
    circuits = list({c.input: c for c in by_output.values()}.values())
    inventory.note_foreign(switch, circuits)
    truth.foreign[switch] = circuits


CONDITIONS = [quarantine, lift, lose, regain, regain, regain, connect]


def record_offers(fabric, truth: Truth) -> None:
    """Record what each piece offers; a held piece stays on offer as it was when it was allocated."""
    for piece in pieces_of(fabric):
        if truth.is_available(fabric, piece):
            truth.given[piece.element] = truth.usable(piece)
        elif truth.standing(piece.element) is HolderState.HELD:
            truth.given.setdefault(piece.element, truth.usable(piece) or piece)
        else:
            truth.given.pop(piece.element, None)


@given(st.data(), st.sampled_from(FABRICS), st.integers(0, 30))
def test_incremental_counts_equal_a_full_count(data, fabric, steps) -> None:
    inventory, truth = Inventory(fabric, None), Truth()
    reported: Counter[PieceKind] = Counter()
    for _ in range(steps):
        act(data, fabric, inventory, truth)
        for kind, number in inventory.take_offer_changes().items():
            reported[kind] += number
    pieces = pieces_of(fabric)
    usable = {piece.element: truth.usable(piece) for piece in pieces}
    available = [usable[p.element] for p in pieces if truth.is_available(fabric, p)]
    idle = [
        usable[p.element] for p in pieces if usable[p.element] and truth.standing(p.element) is not HolderState.HELD
    ]
    dark = [piece for piece in idle if truth.standing(piece.element) is not HolderState.KEPT_LIT]
    assert +inventory.capacity.counts == Counter(kind_of(piece) for piece in usable.values() if piece)
    assert +inventory.available.counts == Counter(map(kind_of, available))
    assert +inventory.idle == Counter(map(kind_of, idle))
    assert +inventory.dark == Counter(map(kind_of, dark))
    assert +inventory.offered == +reported == Counter(map(kind_of, truth.given.values()))
    assert {e: inventory.offered_as(e) for e in usable if inventory.offered_as(e)} == truth.given
    check_choices(fabric, inventory, truth, available)


def check_choices(fabric, inventory: Inventory, truth: Truth, available: list[Piece]) -> None:
    """Check that choices are available pieces in the fabric's order, with warm pieces last."""
    for switch in fabric.switches:
        splitters = [p for p in available if isinstance(p, Splitter) and p.switch == switch]
        splitters.sort(key=lambda splitter: truth.standing(splitter.element) is HolderState.KEPT_LIT)
        assert inventory.available_splitters(switch) == splitters
        assert inventory.available.sizes(switch) == Counter(splitter.fan_out for splitter in splitters)
        for fan_out in {splitter.fan_out for splitter in splitters}:
            same = [splitter for splitter in splitters if splitter.fan_out == fan_out]
            for count in range(1, len(same) + 1):
                assert inventory.choose_splitters(switch, [fan_out] * count) == same[:count]
            with pytest.raises(LookupError):
                inventory.choose_splitters(switch, [fan_out] * (len(same) + 1))
        ports = [p for p in available if isinstance(p, OpticalPort) and p.switch == switch]
        for end in {port.end for port in fabric.ports_on(switch)}:
            found = [port for port in ports if port.end == end]
            unlit = [port for port in found if truth.standing(port.element) is HolderState.FREE]
            assert inventory.available_ports(end, switch) == (unlit or found)
        unheld = [p for p in available if truth.standing(p.element) is HolderState.FREE and p.switch == switch]
        untouched = inventory.untouched(switch)
        assert {p for p in untouched if isinstance(p, Splitter)} == {p for p in unheld if isinstance(p, Splitter)}
        whole = Counter(p.whole_element for p in unheld if isinstance(p, OpticalPort))
        sides = Counter(p.whole_element for p in fabric.ports_on(switch))
        both = {element for element, number in sides.items() if whole[element] == number}
        assert {p.element for p in untouched if isinstance(p, OpticalPort)} == both


@given(st.data(), st.sampled_from(FABRICS))
def test_inventory_reports_changed_kinds_as_unsettled(data, fabric) -> None:
    inventory, truth = Inventory(fabric, None), Truth()
    for _ in range(10):
        inventory.unsettled.clear()
        before = [+total for total in (inventory.idle, inventory.dark)]
        act(data, fabric, inventory, truth)
        after = [+total for total in (inventory.idle, inventory.dark)]
        changed = {k for one, two in zip(before, after, strict=True) for k in {*one, *two} if one[k] != two[k]}
        assert changed <= {kind for kinds in inventory.unsettled.values() for kind in kinds}


def test_inventory_rejects_double_booking_and_double_free() -> None:
    inventory = Inventory(FABRIC, None)
    inventory.take(["port:r1/50"], 1)
    with pytest.raises(DoubleBookingError, match="port:r1/50 is held by reservation 1, wanted by 2"):
        inventory.take(["port:r2/50", "port:r1/50"], 2)
    assert inventory.holders == {"port:r1/50": 1}
    inventory.free(["port:r1/50"])
    with pytest.raises(ImpossibleTransitionError):
        inventory.free(["port:r1/50"])


def test_whole_port_includes_both_of_its_sides() -> None:
    inventory = Inventory(by_sides(FABRIC), None)
    inventory.take(["port:r1/50"], PROBER)
    assert inventory.holders == {"port:r1/50/tx": PROBER, "port:r1/50/rx": PROBER}
    assert inventory.hindrance("port:r1/50") == "being probed"
    inventory.free(["port:r1/50"])
    assert inventory.holders == {}


def test_release_of_a_free_element_raises_error() -> None:
    inventory = Inventory(FABRIC, None)
    with pytest.raises(ImpossibleTransitionError):
        inventory.release(1, ["port:r1/50"])


def test_element_taken_by_a_leaving_holder_is_leaving() -> None:
    holders = Holders()
    holders.take(["splitter:s1"], 1)
    holders.release(1, ["splitter:s1"])
    holders.free(["splitter:s1"])
    holders.take(["splitter:s1"], 1)
    assert holders.standing("splitter:s1") is HolderState.LEAVING


@pytest.mark.parametrize("view", ["away", "quarantined", "holders", "occupied"])
def test_inventory_views_are_read_only(view: str) -> None:
    with pytest.raises(TypeError):
        getattr(Inventory(FABRIC, None), view)["port:r1/50"] = "dirty"
