"""Received power, both margins and the binding element: against data sheets and by hand."""

from __future__ import annotations

import math

import pytest

from algorithms.cascade import Budget, Catalog
from algorithms.leaf_assignment import Ends, FittedTree, Refusal, fit_tree, worst_of
from algorithms.power_budget import (
    Amplifier,
    ElementLoss,
    InvalidOpticsError,
    Passive,
    Piece,
    PowerLevel,
    Transceiver,
    Window,
    certify,
    exactly,
    measured,
)
from algorithms.splitter_tree import shallowest

CONNECTORS = exactly(0.3)
"""One pair at each end."""
PLC = {2: 4.3, 4: 7.4, 8: 10.7, 16: 13.9, 32: 17.2, 64: 21.5}
OCS = Passive("switch:ocs1", ElementLoss(0.5, 1.5, 1.5), 20.0)


def splitter(fan_out, name=None, price=0.0, amplifier=None):
    ideal = 10 * math.log10(fan_out) + 0.1
    return Piece(
        name or f"splitter:1x{fan_out}", fan_out, ElementLoss(ideal, PLC[fan_out] - 0.5, PLC[fan_out]), amplifier, price
    )


def port(name, kind="ER", **fibers):
    launch, sensitivity, overload = {
        "LR": (PowerLevel(-8.2, -4, 0.5), -14.4, 0.5),
        "ER": (PowerLevel(-4.7, 0, 4.0), -15.8, -1.0),
        "ZR": (PowerLevel(0, 2, 4.0), -24.0, -7.0),
        "DWDM": (PowerLevel(0, 1.5, 3.0), -28.0, -5.0),
    }[kind]
    return Transceiver(name, launch, sensitivity, overload, **fibers)


@pytest.mark.parametrize(
    ("levels", "margins"),
    [
        ([2], {"LR": -1.7, "ER": 3.2, "ZR": 16.1, "DWDM": 20.1}),
        ([4], {"LR": -4.8, "ER": 0.1, "ZR": 13.0, "DWDM": 17.0}),
        ([16], {"LR": -11.3, "ER": -6.4, "ZR": 6.5, "DWDM": 10.5}),
        ([4, 4], {"LR": -13.7, "ER": -8.8, "ZR": 4.1, "DWDM": 8.1}),
        ([64], {"LR": -18.9, "ER": -14.0, "ZR": -1.1, "DWDM": 2.9}),
        ([4, 4, 4], {"LR": -22.6, "ER": -17.7, "ZR": -4.8, "DWDM": -0.8}),
    ],
)
def test_margins_equal_data_sheet_values(levels, margins):
    path = [OCS]
    for fan_out in levels:
        path += [*splitter(fan_out).elements, OCS]
    for kind, margin in margins.items():
        sender, receiver = (port(name, kind, to_switch=CONNECTORS, from_switch=CONNECTORS) for name in ("a", "b"))
        certificate = certify(sender, path, receiver)
        assert certificate.sensitivity_margin == pytest.approx(margin)
        assert certificate.receiver == "b"


@pytest.mark.parametrize(("kind", "fan_out", "too_bright"), [("ZR", 4, True), ("ZR", 16, False), ("ER", 4, False)])
def test_overload_is_a_fault(kind, fan_out, too_bright):
    certificate = certify(port("a", kind), [OCS, *splitter(fan_out).elements, OCS], port("b", kind))
    assert (certificate.overload_margin < 0) == too_bright
    if too_bright:
        assert certificate.binding == "a" and "too much power" in certificate.sentence


def test_attenuator_reduces_overload():
    attenuator = Passive("attenuator", exactly(10.0))
    bare, dimmed = (certify(port("a", "ZR"), row, port("b", "ZR")) for row in ([OCS], [OCS, attenuator]))
    assert bare.overload_margin == pytest.approx(-10.5) and dimmed.overload_margin == pytest.approx(-0.5)


def test_element_with_largest_loss_binds():
    weak = port("weak", from_switch=exactly(9.0))
    path = [OCS, *splitter(4, "splitter:s1").elements, OCS]
    assert certify(port("a"), path, port("b")).binding == "splitter:s1"
    certificate = certify(port("a"), path, weak)
    assert certificate.binding == "weak"
    assert certificate.sentence.startswith("weak lacks 8.3 dB of power; weak has the largest loss")


def test_amplifier_output_is_limited_to_its_maximum():
    amplifier = Amplifier("amp", (17.0, 20.0, 25.0), 17.0)
    assert amplifier.after(PowerLevel(-4, 0, 4)) == PowerLevel(13, 17, 17)
    certificate = certify(port("a"), [OCS, amplifier, OCS], port("b"))
    assert certificate.binding == "amp" and certificate.overload_margin == pytest.approx(-17.5)


def test_overdriven_element_binds():
    amplifier = Amplifier("amp", (30.0, 30.0, 30.0), 25.0)
    path = [OCS, amplifier, OCS, *splitter(64).elements, Passive("attenuator", exactly(15.0)), OCS]
    certificate = certify(port("a", "DWDM"), path, port("b", "DWDM"))
    assert certificate.binding == "switch:ocs1" and certificate.overload_margin == pytest.approx(-5.0)


def test_measured_loss_replaces_data_sheet_within_monitor_error():
    assert measured(-1.5, -8.5) == ElementLoss(6.0, 7.0, 8.0)
    assert measured(-1.5, -1.0) == ElementLoss(0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ElementLoss(2, 1, 3),
        lambda: ElementLoss(-1, 0, 0),
        lambda: PowerLevel(1, 0, 2),
        lambda: PowerLevel(math.nan, 0, 0),
        lambda: Amplifier("a", (3, 2, 1), 17),
        lambda: Piece("s", 1, ElementLoss()),
        lambda: Transceiver("p", PowerLevel(0, 0, 0), -10, -20),
    ],
)
def test_impossible_values_are_refused(wrong):
    with pytest.raises(InvalidOpticsError):
        wrong()


def test_tree_with_1000_leaves_is_realizable_with_amplifiers():
    """Section II-B of the paper: cascades of several sizes, amplified, reach a thousand receivers."""
    booster = Amplifier("amp:booster", (17.0, 20.0, 25.0), 17.0, 10.0)
    root = Piece("splitter:top", 16, ElementLoss(12.1, 13.0, 13.9), booster, 1080.0)
    leaves = [
        Piece(
            f"splitter:{n}",
            64,
            ElementLoss(18.1, 20.0, 21.5),
            Amplifier(f"amp:{n}", (17.0, 20.0, 25.0), 17.0, 10.0),
            1250.0,
        )
        for n in range(16)
    ]
    ends = Ends(port("a"), tuple(port(f"r{n}") for n in range(1000)))
    tree = fit_tree(ends, [root, *leaves], OCS)
    assert isinstance(tree, FittedTree) and len(tree.pieces) == 17
    assert len(set(tree.shape.leaves)) == 1000
    assert all(c.sensitivity_margin >= 0 and c.overload_margin >= 0 for c in tree.certificates)

    passive = [Piece(p.name, p.fan_out, p.loss) for p in (root, *leaves)]
    refusal = fit_tree(ends, passive, OCS)
    assert isinstance(refusal, Refusal) and refusal.binding is not None
    assert refusal.binding.sensitivity_margin == pytest.approx(-4.7 - 13.9 - 21.5 - 4.5 + 15.8)
    assert "lacks 28.8 dB of power" in refusal.sentence

    window = port("r").needed
    amplified = {root.kind: 1, leaves[0].kind: 16}
    catalog = Catalog(amplified, Budget(port("a").entering, OCS, window), 1000)
    assert catalog.choose(1000, {16: 1, 64: 16}) == (64,) * 16 + (16,)
    assert catalog.choose(1000, {16: 1, 64: 15}) is None


def weak(name):
    return port(name, "DWDM", from_switch=exactly(12))


def test_weak_rack_gets_shallow_leaf():
    """An output of the first splitter suits every rack, an output of the second only near racks."""
    pieces = [splitter(4, f"splitter:s{n}") for n in range(3)]
    near = tuple(port(f"r{n}", "DWDM") for n in range(4))
    tree = fit_tree(Ends(port("a", "ZR"), (*near, weak("far"))), pieces[:2], OCS, shallowest(5, [4, 4]))
    assert isinstance(tree, FittedTree) and tree.weakest.margin >= 0
    assert tree.shape.leaves[4] is not None and tree.shape.leaves[4][0] == 0, "on the first splitter"

    far = tuple(weak(f"far{n}") for n in range(4))
    refusal = fit_tree(Ends(port("a", "ZR"), (*near, *far)), pieces, OCS, shallowest(8, [4, 4, 4]))
    assert isinstance(refusal, Refusal) and refusal.binding is not None
    assert refusal.binding.receiver.startswith("far") and refusal.binding.binding == refusal.binding.receiver


def test_many_kinds_of_pieces_are_planned_at_their_worst_values():
    pieces = [Piece(f"s{n}", 4, exactly(6 + n / 10), price=float(n)) for n in range(10)]
    assert worst_of(pieces) == Piece("", 4, ElementLoss(6.0, 6.9, 6.9), price=9.0)
    tree = fit_tree(Ends(port("a", "ZR"), tuple(port(f"r{n}", "DWDM") for n in range(20))), pieces, OCS)
    assert isinstance(tree, FittedTree) and len({p.name for p in tree.pieces}) == len(tree.pieces) == 7


def test_catalog_rejects_ambiguous_kinds_and_leaves_beyond_table():
    budget = Budget(PowerLevel(0, 0, 0), OCS, port("b", "ZR").needed)
    with pytest.raises(InvalidOpticsError, match="same number of outputs"):
        Catalog({Piece("", 4, exactly(7)): 1, Piece("", 4, exactly(8)): 1}, budget)
    with pytest.raises(InvalidOpticsError, match="1 to 10 leaves"):
        Catalog({splitter(4): 1}, budget, 10).cheapest(11, {4: 1})


def test_catalog_finds_cheapest_tree_beyond_its_table():
    supply = {splitter(4, price=40.0).kind: 40, splitter(16, price=80.0).kind: 10, splitter(64, price=250.0).kind: 3}
    budget = Budget(PowerLevel(0, 0, 0), Passive("switch", exactly(1.5)), Window(-40.0, 0.0))
    table, beyond = Catalog(supply, budget, 60), Catalog(supply, budget, 20)
    prices = {4: 40, 16: 80, 64: 250}
    for leaves in range(21, 61, 3):
        found, other = (c.choose(leaves, {4: 9, 16: 3, 64: 1}) for c in (table, beyond))
        assert found and other and sum(map(prices.get, found)) == sum(map(prices.get, other))
    assert beyond.choose(5000, {4: 9, 16: 3, 64: 1}) is None


def test_large_pool_limits_size_of_catalog_table():
    supply = {splitter(4, price=1).kind: 333, splitter(16, price=2).kind: 67, splitter(64, price=3).kind: 16}
    catalog = Catalog(supply, Budget(PowerLevel(0, 0, 0), OCS, Window(-40.0, 0.0)), 1000)
    assert 50 < catalog.max_leaves < 1000
    bright = Catalog(supply, Budget(PowerLevel(0, 0, 0), OCS, Window(-40.0, -6.0)), 1000)
    assert bright.max_leaves == 0 and bright.choose(1, {4: 1, 16: 1}) == (4,)
