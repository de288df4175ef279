"""Steps between layouts lead from any state of devices to the desired one and interrupt no staying receiver."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.light.layout import NOTHING, DeviceState, Layout, Step, both, everything, step_between
from blast_controller.core.light.light_tree import build, good_outputs, grow, prune, rehang
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from tests.support.controller.core import World, make_fabric
from tests.support.controller.layouts import FABRIC, GROUP, SENDER, changes, layout, members, trees


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Draw the layout of a group that has a light tree, or stays within its rack."""
    tree = draw(st.none() | trees())
    racks = [leaf.port.rack for leaf in tree.leaves] if tree else []
    receivers = draw(members(racks)) if tree else ["r1h2"]
    return layout(tree, receivers)


@st.composite
def device_states(draw: st.DrawFn) -> DeviceState:
    """Draw a state that devices can hold: no input, no output and no match twice."""
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
    return DeviceState(tuple(circuits), draw(st.dictionaries(st.integers(1, 3), forwards, max_size=3)))


@dataclass
class Devices:
    """All switches and ToRs of a fabric, together: a switch refuses to use an input or an output twice."""

    circuits: dict[tuple[str, int], int] = field(default_factory=dict)
    rules: dict[tuple[int, tuple[int, str, str]], Forward] = field(default_factory=dict)

    @classmethod
    def configured(cls, held: DeviceState) -> Devices:
        """Return devices that hold exactly this."""
        devices = cls()
        devices.do(Step((), held.circuits, {}, held.forwards))
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


def served(held):
    """Return the hosts that receive the group's packets, by the fibers of the fabric and not by the layouts."""
    world = World(FABRIC)
    for c in held.circuits:
        world.switches[c.switch].circuits[c.input] = c.output
    for datapath, found in held.forwards.items():
        world.tors[datapath].rules = {f.key: (f.outputs, 1) for f in found}
    return world.receivers_of(FABRIC.hosts[SENDER], GROUP)


@given(layouts())
def test_layout_serves_exactly_its_receivers(layout):
    assert served(layout.device_state) == set(layout.receivers)


@given(device_states(), device_states())
def test_step_transforms_any_state_into_any_other(before, after):
    devices = Devices.configured(before)
    devices.do(step_between(before, after))
    assert devices == Devices.configured(after)


@given(device_states(), device_states())
def test_step_leaves_common_circuits_and_rules_unchanged(before, after):
    step = step_between(before, after)
    assert not {*step.disconnect, *step.connect} & set(before.circuits) & set(after.circuits)
    for datapath, found in step.add.items():
        assert not set(found) & set(before.forwards.get(datapath, ()))
    for datapath, found in step.remove.items():
        assert not {f.key for f in found} & {f.key for f in after.forwards.get(datapath, ())}


@given(device_states(), device_states())
def test_steps_per_device_add_up_to_the_whole_step(before, after):
    step = step_between(before, after)
    devices = Devices.configured(before)
    for device in sorted(step.devices, key=str):
        devices.do(step.only(device))
    assert devices == Devices.configured(after)


@given(device_states(), device_states(), st.randoms())
def test_everything_can_be_removed_after_a_partial_step(before, after, chance):
    """A device may have run any part of a step, so that it may hold anything of both states."""
    step = step_between(before, after)
    devices = Devices.configured(before)
    for c in step.disconnect:
        if chance.random() < 0.5:
            devices.disconnect(c)
    free = Devices(dict(devices.circuits))
    for c in step.connect:
        if chance.random() < 0.5 and not _conflicts(free, c):
            devices.connect(c)
            free.connect(c)
    devices.do(step_between(everything([before, after]), NOTHING))
    assert devices.circuits == {}


def _conflicts(devices, circuit):
    used = {(switch, output) for (switch, _), output in devices.circuits.items()}
    return (circuit.switch, circuit.input) in devices.circuits or (circuit.switch, circuit.output) in used


@given(device_states(), device_states())
def test_union_has_the_new_state_and_compatible_old_circuits(old, new):
    union = both(old, new)
    Devices.configured(union)
    assert set(new.circuits) <= set(union.circuits) <= {*old.circuits, *new.circuits}
    displaced = set(old.circuits) - set(union.circuits)
    for c in displaced:
        assert any(c.switch == n.switch and (c.input == n.input or c.output == n.output) for n in new.circuits)
    for held in (old, new):
        for datapath, found in held.forwards.items():
            merged = {f.key: set(f.outputs) for f in union.forwards[datapath]}
            assert all(set(f.outputs) <= merged[f.key] for f in found)


@given(changes())
def test_union_serves_old_and_new_members_during_a_change(change):
    before, after = change
    assert served(both(before.device_state, after.device_state)) == {
        *before.receivers,
        *after.receivers,
    } - _leaving_first(before, after)


def _leaving_first(before, after):
    """Return leaving members in racks whose output or circuit is reassigned: they lose service first."""
    taken = {(c.switch, c.input): c for c in after.circuits}
    leaves = before.tree.leaves if before.tree else ()
    lost = {leaf.port.rack for leaf in leaves if after.tree.leaf_of(leaf.port.rack) is None}
    displaced = {leaf.port.rack for leaf in leaves if leaf.port.rack in lost and (leaf.port.switch, leaf.feed) in taken}
    removed = {c for c in before.circuits if (c.switch, c.input) in taken and taken[c.switch, c.input] != c}
    racks = displaced | _behind(before.tree, removed) & lost
    return {name for name in before.receivers if FABRIC.hosts[name].rack in racks} - set(after.receivers)


def _behind(tree, removed):
    """Return the racks whose path from the root passes one of these circuits."""
    feeds = {c.output: c.input for c in tree.circuits}
    inputs = {output: h.splitter.input for h in tree.splitters for output in h.splitter.outputs}

    def passes(output):
        while output in feeds:
            if CrossConnect(tree.switch, feeds[output], output) in removed:
                return True
            output = inputs.get(feeds[output])
        return False

    return {leaf.port.rack for leaf in tree.leaves if passes(leaf.port.output)}


@given(changes())
def test_receivers_on_unmoved_outputs_are_served_after_each_operation(change):
    """Add, then remove; each device runs its operations one by one."""
    before, after = change
    union = both(before.device_state, after.device_state)
    moved = {c.output for c in step_between(before.device_state, union).disconnect}
    unmoved = {leaf.port.rack for leaf in before.tree.leaves if leaf.port.output not in moved} | {"r1"}
    kept = set(before.receivers) & set(after.receivers)
    staying = {name for name in kept if FABRIC.hosts[name].rack in unmoved}
    world = World(FABRIC)
    _fill(world, before.device_state)
    for here, there in ((before.device_state, union), (union, after.device_state)):
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


def _fill(world, held):
    for c in held.circuits:
        assert world.switches[c.switch].connect(c) is None
    for datapath, found in held.forwards.items():
        for forward in found:
            world.tors[datapath].add(forward, 1)


@given(changes())
def test_circuits_are_connected_after_their_feeds(change):
    """Circuits are connected from the root on, each after its feed, so that no output lights another tree."""
    before, after = change
    for start, end in (
        (NOTHING, before.device_state),
        (NOTHING, after.device_state),
        (before.device_state, after.device_state),
    ):
        held = set(start.circuits) & set(end.circuits)
        fed = _lit_inputs(held)
        for c in step_between(start, end).connect:
            assert c.input in fed, f"{c} is connected before its feed"
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
    return DeviceState((), {datapath: forwards})


def test_rule_with_other_outputs_is_replaced_in_place():
    """A gap between the two rules would lose packets."""
    assert step_between(at(rule(2)), at(rule(2, 3))) == Step((), (), {}, {1: (rule(2, 3),)})


def test_tree_lists_its_circuits_from_the_root():
    tree = build(PORTS[0], PORTS[1:], [PAIR, QUAD], loop_leaf=False)
    assert tree.circuits[0] == CrossConnect("ocs1", PORTS[0].input, QUAD.input)
    assert tree.circuits[1] == CrossConnect("ocs1", QUAD.outputs[0], PAIR.input)
    assert {c.output for c in tree.circuits[2:]} == {port.output for port in PORTS[1:]}


def test_grow_leaves_bad_outputs_open():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    grown = grow(tree, [PORTS[3]], [], bad_outputs=[QUAD.outputs[2]])
    assert grown.leaves[-1].feed == QUAD.outputs[3]
    assert good_outputs(grown, [QUAD.outputs[2]]) == []
    assert grow(grown, [PORTS[4]], [], bad_outputs=[QUAD.outputs[2]]) is None


def test_grow_attaches_no_splitter_to_a_bad_output():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    assert grow(tree, PORTS[3:5], [PAIR], bad_outputs=[QUAD.outputs[2]]).splitters[-1].feed == QUAD.outputs[3]
    assert grow(tree, PORTS[3:5], [PAIR], bad_outputs=QUAD.outputs[2:]) is None


def test_rehang_moves_only_the_dark_leaf():
    tree = build(PORTS[0], PORTS[1:3], [QUAD], loop_leaf=False)
    dark = PORTS[1].output
    step = step_between(DeviceState(tree.circuits, {}), DeviceState(rehang(tree, [dark], []).circuits, {}))
    assert step.disconnect == (CrossConnect("ocs1", QUAD.outputs[0], dark),)
    assert step.connect == (CrossConnect("ocs1", QUAD.outputs[2], dark),)
    assert rehang(tree, [dark], QUAD.outputs) is None


def test_prune_removes_splitters_without_receivers():
    tree = build(PORTS[0], PORTS[1:], [QUAD, PAIR], loop_leaf=False)
    behind = {leaf.port.rack for leaf in tree.leaves if leaf.feed in PAIR.outputs}
    assert [h.splitter for h in prune(tree, behind).splitters] == [QUAD]
