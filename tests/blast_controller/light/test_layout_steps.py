"""Steps between layouts: from whatever devices hold to what is wanted, and nobody who stays loses service."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.light.layout import NOTHING, Holding, Layout, Step, both, everything, step_between
from blast_controller.core.light.light_tree import build, good_outputs, grow, prune, rehang
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from tests.support.core import World, make_fabric
from tests.support.layouts import FABRIC, GROUP, SENDER, changes, layout, members, trees


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw the layout of a group that has a light tree, or stays within its rack."""
    tree = draw(st.none() | trees())
    racks = [leaf.port.rack for leaf in tree.leaves] if tree else []
    receivers = draw(members(racks)) if tree else ["r1h2"]
    return layout(tree, receivers)


@st.composite
def holdings(draw: st.DrawFn) -> Holding:
    """Whatever devices can hold at once: no input, no output and no match twice."""
    circuits = [
        CrossConnect(switch, i, o)
        for switch in ("ocs1", "ocs2")
        for i, o in zip(
            draw(st.lists(st.integers(1, 4), max_size=3, unique=True)), draw(st.permutations(range(1, 5))), strict=False
        )
    ]
    outputs = st.sets(st.integers(1, 4), max_size=3).map(lambda ports: tuple(sorted(ports)))
    forwards = st.lists(
        st.builds(Forward, st.integers(1, 3), st.sampled_from(["10.0.0.1", "10.0.0.2"]), st.just(GROUP), outputs),
        max_size=3,
        unique_by=lambda forward: forward.key,
    ).map(tuple)
    return Holding(tuple(circuits), draw(st.dictionaries(st.integers(1, 3), forwards, max_size=3)))


@dataclass
class Devices:
    """All switches and ToRs of a fabric, together: a switch refuses to use an input or an output twice."""

    circuits: dict[tuple[str, int], int] = field(default_factory=dict)
    rules: dict[tuple[int, tuple[int, str, str]], Forward] = field(default_factory=dict)

    @classmethod
    def holding(cls, holding: Holding) -> Devices:
        """Devices that hold just this."""
        devices = cls()
        devices.do(Step((), holding.circuits, {}, holding.forwards))
        return devices

    def do(self, step: Step) -> None:
        """Disconnect, then connect; remove rules, then add them."""
        for c in step.disconnect:
            self.disconnect(c)
        for c in step.connect:
            self.connect(c)
        for datapath, found in step.remove.items():
            for forward in found:
                self.rules.pop((datapath, forward.key), None)
        for datapath, found in step.add.items():
            for forward in found:
                self.rules[datapath, forward.key] = forward

    def connect(self, c: CrossConnect) -> None:
        """Connect an input to an output.

        Raises AssertionError where the input or the output is in use.
        """
        assert (c.switch, c.input) not in self.circuits, f"the input of {c} is in use"
        taken = {(switch, output) for (switch, _), output in self.circuits.items()}
        assert (c.switch, c.output) not in taken, f"the output of {c} is in use"
        self.circuits[c.switch, c.input] = c.output

    def disconnect(self, c: CrossConnect) -> None:
        """Remove a circuit, if it is there."""
        if self.circuits.get((c.switch, c.input)) == c.output:
            del self.circuits[c.switch, c.input]


def served(holding):
    """Who gets the group's packets: by the fibers of the fabric, not by what the layouts say."""
    world = World(FABRIC)
    for c in holding.circuits:
        world.switches[c.switch].circuits[c.input] = c.output
    for datapath, found in holding.forwards.items():
        world.tors[datapath].rules = {f.key: (f.outputs, 1) for f in found}
    return world.receivers_of(FABRIC.hosts[SENDER], GROUP)


@given(layouts())
def test_a_layout_serves_its_receivers_and_nobody_else(layout):
    assert served(layout.holding) == set(layout.receivers)


@given(holdings(), holdings())
def test_a_step_leads_from_any_holding_to_exactly_any_other(before, after):
    devices = Devices.holding(before)
    devices.do(step_between(before, after))
    assert devices == Devices.holding(after)


@given(holdings(), holdings())
def test_a_step_touches_nothing_that_stays(before, after):
    step = step_between(before, after)
    assert not {*step.disconnect, *step.connect} & set(before.circuits) & set(after.circuits)
    for datapath, found in step.add.items():
        assert not set(found) & set(before.forwards.get(datapath, ()))
    for datapath, found in step.remove.items():
        assert not {f.key for f in found} & {f.key for f in after.forwards.get(datapath, ())}


@given(holdings(), holdings())
def test_the_shares_of_the_devices_are_the_whole(before, after):
    step = step_between(before, after)
    devices = Devices.holding(before)
    for device in sorted(step.devices, key=str):
        devices.do(step.only(device))
    assert devices == Devices.holding(after)


@given(holdings(), holdings(), st.randoms())
def test_from_wherever_a_step_was_left_everything_can_be_taken_away(before, after, chance):
    """A device may have done any part of a step; what it might hold is all of both, and that can go."""
    step = step_between(before, after)
    devices = Devices.holding(before)
    for c in step.disconnect:
        if chance.random() < 0.5:
            devices.disconnect(c)
    free = Devices(dict(devices.circuits))
    for c in step.connect:
        if chance.random() < 0.5 and not _in_the_way(free, c):
            devices.connect(c)
            free.connect(c)
    devices.do(step_between(everything([before, after]), NOTHING))
    assert devices.circuits == {}


def _in_the_way(devices, circuit):
    used = {(switch, output) for (switch, _), output in devices.circuits.items()}
    return (circuit.switch, circuit.input) in devices.circuits or (circuit.switch, circuit.output) in used


@given(holdings(), holdings())
def test_both_has_all_of_the_new_and_what_does_not_stand_in_its_way_of_the_old(old, new):
    union = both(old, new)
    Devices.holding(union)
    assert set(new.circuits) <= set(union.circuits) <= {*old.circuits, *new.circuits}
    displaced = set(old.circuits) - set(union.circuits)
    for c in displaced:
        assert any(c.switch == n.switch and (c.input == n.input or c.output == n.output) for n in new.circuits)
    for holding in (old, new):
        for datapath, found in holding.forwards.items():
            merged = {f.key: set(f.outputs) for f in union.forwards[datapath]}
            assert all(set(f.outputs) <= merged[f.key] for f in found)


@given(changes())
def test_while_a_tree_is_changed_all_old_and_new_members_are_served(change):
    before, after = change
    assert served(both(before.holding, after.holding)) == {*before.receivers, *after.receivers} - _parted(before, after)


def _parted(before, after):
    """Members in racks whose output was given to somebody else: they are leaving, and their light is gone first."""
    taken = {(c.switch, c.input): c for c in after.circuits}
    leaves = before.tree.leaves if before.tree else ()
    lost = {leaf.port.rack for leaf in leaves if after.tree.leaf_of(leaf.port.rack) is None}
    displaced = {leaf.port.rack for leaf in leaves if leaf.port.rack in lost and (leaf.port.switch, leaf.feed) in taken}
    gone = {c for c in before.circuits if (c.switch, c.input) in taken and taken[c.switch, c.input] != c}
    racks = displaced | _behind(before.tree, gone) & lost
    return {name for name in before.receivers if FABRIC.hosts[name].rack in racks} - set(after.receivers)


def _behind(tree, gone):
    """Return the racks whose path from the root passes one of these circuits."""
    feeds = {c.output: c.input for c in tree.circuits}
    inputs = {output: h.splitter.input for h in tree.splitters for output in h.splitter.outputs}

    def passes(output):
        while output in feeds:
            if CrossConnect(tree.switch, feeds[output], output) in gone:
                return True
            output = inputs.get(feeds[output])
        return False

    return {leaf.port.rack for leaf in tree.leaves if passes(leaf.port.output)}


@given(changes())
def test_whoever_stays_on_their_output_is_served_after_every_single_operation(change):
    """Add, then take away; each device does its share one by one, circuits before rules or after."""
    before, after = change
    union = both(before.holding, after.holding)
    moved = {c.output for c in step_between(before.holding, union).disconnect}
    unmoved = {leaf.port.rack for leaf in before.tree.leaves if leaf.port.output not in moved} | {"r1"}
    kept = set(before.receivers) & set(after.receivers)
    staying = {name for name in kept if FABRIC.hosts[name].rack in unmoved}
    world = World(FABRIC)
    _fill(world, before.holding)
    for here, there in ((before.holding, union), (union, after.holding)):
        step = step_between(here, there)
        for c in step.disconnect:
            world.switches[c.switch].disconnect(c)
            assert staying <= world.receivers_of(FABRIC.hosts[SENDER], GROUP)
        for c in step.connect:
            assert world.switches[c.switch].connect(c) is None
            assert staying <= world.receivers_of(FABRIC.hosts[SENDER], GROUP)
        for datapath in sorted({*step.remove, *step.add}):
            for forward in step.remove.get(datapath, ()):
                world.tors[datapath].remove(forward, 1)
            for forward in step.add.get(datapath, ()):
                world.tors[datapath].add(forward, 1)
            assert staying <= world.receivers_of(FABRIC.hosts[SENDER], GROUP)
    assert world.receivers_of(FABRIC.hosts[SENDER], GROUP) == set(after.receivers)


def _fill(world, holding):
    for c in holding.circuits:
        assert world.switches[c.switch].connect(c) is None
    for datapath, found in holding.forwards.items():
        for forward in found:
            world.tors[datapath].add(forward, 1)


@given(changes())
def test_roots_come_first(change):
    """Circuits are connected from the root on, each after its feed, so that no output lights another tree."""
    before, after = change
    for start, end in ((NOTHING, before.holding), (NOTHING, after.holding), (before.holding, after.holding)):
        held = set(start.circuits) & set(end.circuits)
        fed = _lit_inputs(held)
        for c in step_between(start, end).connect:
            assert c.input in fed, f"{c} is connected before its light"
            held.add(c)
            fed = _lit_inputs(held)


def _lit_inputs(circuits):
    """Return the switch inputs that are lit from the root of all trees."""
    fed = {FABRIC.racks["r1"].optical_ports[0].input}
    splitters = {s.input: s.outputs for s in FABRIC.splitters.values()}
    while new := {
        output for c in circuits if c.input in fed for output in splitters.get(c.output, ()) if output not in fed
    }:
        fed |= new
    return fed


A, B = CrossConnect("ocs1", 1, 5), CrossConnect("ocs1", 2, 6)
SMALL = make_fabric(5, [4, 2])
PORTS = [SMALL.racks[f"r{n}"].optical_ports[0] for n in range(1, 6)]
QUAD, PAIR = SMALL.splitters.values()


def rule(*outputs, port=1, group="239.77.0.1"):
    return Forward(port, "10.0.1.1", group, outputs)


def at(*forwards, datapath=1):
    return Holding((), {datapath: forwards})


def test_a_rule_with_other_outputs_replaces_and_is_not_removed_first():
    """Without a rule the packets of that moment would be lost."""
    assert step_between(at(rule(2)), at(rule(2, 3))) == Step((), (), {}, {1: (rule(2, 3),)})


def test_a_tree_is_connected_from_its_root_on():
    tree = build(PORTS[0], PORTS[1:], [PAIR, QUAD], loop_leaf=False)
    assert tree.circuits[0] == CrossConnect("ocs1", PORTS[0].input, QUAD.input)
    assert tree.circuits[1] == CrossConnect("ocs1", QUAD.outputs[0], PAIR.input)
    assert {c.output for c in tree.circuits[2:]} == {port.output for port in PORTS[1:]}


def test_growing_leaves_bad_outputs_open():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    grown = grow(tree, [PORTS[3]], [], bad_outputs=[QUAD.outputs[2]])
    assert grown.leaves[-1].feed == QUAD.outputs[3]
    assert good_outputs(grown, [QUAD.outputs[2]]) == []
    assert grow(grown, [PORTS[4]], [], bad_outputs=[QUAD.outputs[2]]) is None


def test_a_splitter_is_not_hung_on_a_bad_output():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    assert grow(tree, PORTS[3:5], [PAIR], bad_outputs=[QUAD.outputs[2]]).splitters[-1].feed == QUAD.outputs[3]
    assert grow(tree, PORTS[3:5], [PAIR], bad_outputs=QUAD.outputs[2:]) is None


def test_rehanging_moves_only_what_is_dark():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    dark = PORTS[1].output
    step = step_between(Holding(tree.circuits, {}), Holding(rehang(tree, [dark], []).circuits, {}))
    assert step.disconnect == (CrossConnect("ocs1", QUAD.outputs[0], dark),)
    assert step.connect == (CrossConnect("ocs1", QUAD.outputs[2], dark),)
    assert rehang(tree, [dark], QUAD.outputs) is None


def test_pruning_takes_splitters_that_serve_nobody():
    tree = build(PORTS[0], PORTS[1:], [QUAD, PAIR], loop_leaf=False)
    behind = {leaf.port.rack for leaf in tree.leaves if leaf.feed in PAIR.outputs}
    assert [h.splitter for h in prune(tree, behind).splitters] == [QUAD]
