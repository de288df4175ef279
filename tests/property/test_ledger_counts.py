"""What the ledger counts as it changes is what a count of everything would give."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.fabric import CrossConnect, Fabric, Splitter
from blast_controller.core.ledger import Ledger
from tests.support.core import make_fabric

FABRIC = make_fabric(racks=4, splitters=(4, 2, 4, 3), ports=2, switches=2, shared=2)
ELEMENTS = Ledger(FABRIC, IPv4Network("239.77.0.0/24"), None).elements
HOLDABLE = [element for element in ELEMENTS if not element.startswith("leg:")]
DEVICES = [*FABRIC.switches, *{rack.datapath for rack in FABRIC.racks.values()}]

ACTIONS = st.one_of(
    st.tuples(st.just("hold"), st.sampled_from(HOLDABLE)),
    st.tuples(st.just("free"), st.sampled_from(HOLDABLE)),
    st.tuples(st.just("quarantine"), st.sampled_from(ELEMENTS)),
    st.tuples(st.just("lift"), st.sampled_from(ELEMENTS)),
    st.tuples(st.just("away"), st.sampled_from(DEVICES)),
    st.tuples(st.just("back"), st.sampled_from(DEVICES)),
    st.tuples(
        st.just("foreign"),
        st.tuples(
            st.sampled_from(FABRIC.switches), st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), max_size=3)
        ),
    ),
)


def act(ledger: Ledger, action: str, subject) -> None:
    match action:
        case "hold" if subject not in ledger.holder:
            ledger.take([subject], 1)
        case "free" if subject in ledger.holder:
            ledger.free([subject])
        case "quarantine":
            ledger.quarantine(subject, "dirty")
        case "lift":
            ledger.lift_quarantine(subject)
        case "away":
            ledger.note_away(subject, "gone")
        case "back":
            ledger.note_back(subject)
        case "foreign":
            switch, pairs = subject
            ledger.note_foreign(switch, [CrossConnect(switch, *pair) for pair in pairs])


def usable_splitters(fabric: Fabric, ledger: Ledger) -> list[Splitter]:
    cut = [s.without(lambda leg: leg in ledger.quarantined) for s in fabric.splitters.values()]
    return [s for s in cut if s.ways > 1 and ledger.unusable(s.element) is None]


@given(st.lists(ACTIONS, max_size=40))
def test_counted_piece_by_piece_or_all_at_once(actions):
    ledger = Ledger(FABRIC, IPv4Network("239.77.0.0/24"), None)
    for action, subject in actions:
        act(ledger, action, subject)
    usable = usable_splitters(FABRIC, ledger)
    ports = [p for rack in FABRIC.racks.values() for p in rack.optical_ports if ledger.unusable(p.element) is None]
    for switch in FABRIC.switches:
        free = [
            s for s in usable if s.switch == switch and s.element not in ledger.holder and switch not in ledger.away
        ]
        assert ledger.capacity_sizes(switch) == Counter(s.ways for s in usable if s.switch == switch)
        assert ledger.free_sizes(switch) == Counter(s.ways for s in free)
        assert ledger.free_splitters(switch, [s.ways for s in free]) == free, "in the fabric's order"
        whole = Counter(p.rack for p in ports if p.switch == switch)
        assert dict(ledger.capacity()._ports[switch]) == whole
        left = Counter(
            p.rack
            for p in ports
            if p.switch == switch
            and p.element not in ledger.holder
            and switch not in ledger.away
            and FABRIC.racks[p.rack].datapath not in ledger.away
        )
        assert dict(ledger.residual()._ports[switch]) == left


def test_more_splitters_than_there_are_cannot_be_had():
    ledger = Ledger(FABRIC, IPv4Network("239.77.0.0/24"), None)
    with pytest.raises(LookupError):
        ledger.free_splitters(FABRIC.switches[0], [4])
    for device in DEVICES:
        ledger.note_back(device)
    assert len(ledger.free_splitters("ocs1", [4, 4])) == 2
    with pytest.raises(LookupError):
        ledger.free_splitters("ocs1", [4, 4, 4])


def test_what_is_looked_at_cannot_be_changed_behind_the_counts():
    ledger = Ledger(FABRIC, IPv4Network("239.77.0.0/24"), None)
    for view in (ledger.away, ledger.quarantined):
        with pytest.raises(TypeError):
            view["port:r1/50"] = "dirty"
