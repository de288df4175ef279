"""The fault localizer against hardware that is really broken: what it condemns, what it clears, and when it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.light.fault_localizer import NO_LIGHT, FaultLocalizer
from blast_controller.core.light.light_tree import build
from tests.support.core import make_fabric

FABRIC = make_fabric(6, [4, 4, 2])
ROOT = FABRIC.racks["r1"].optical_ports[0]
LEAVES = [FABRIC.racks[f"r{n}"].optical_ports[0] for n in range(2, 7)]
OUTPUTS = [s.output_element(output) for s in FABRIC.splitters.values() for output in s.outputs]
SPLITTERS = {s.element: s for s in FABRIC.splitters.values()}


class Clinic:
    """Lights groups on what is not quarantined, and lets the localizer see what stays dark.

    `broken` are the elements that really let no light through.
    """

    def __init__(self, broken):
        self.broken = set(broken)
        self.localizer = FaultLocalizer()
        self.quarantined = {}

    def tree(self, ports):
        """Return a tree to these leaves on usable hardware, or None."""
        usable = [s.without(self.quarantined.__contains__) for s in FABRIC.splitters.values()]
        usable = [s for s in usable if s.fan_out > 1 and s.element not in self.quarantined]
        ports = [port for port in ports if port.element not in self.quarantined]
        fitting = [s for s in usable if s.fan_out >= len(ports)]
        if len(ports) < 2 or not fitting or ROOT.element in self.quarantined:
            return None
        return build(ROOT, ports, fitting[:1], loop_leaf=False)

    def is_dark(self, tree, leaf):
        way = {leaf.port.element, tree.feed_element(leaf), tree.splitters[0].splitter.element, ROOT.element}
        return bool(way & self.broken)

    def attempt(self, ports):
        """Light a group once; whether anything was dark. None where there is no hardware left."""
        tree = self.tree(ports)
        if tree is None:
            return None
        dark = [leaf.port.output for leaf in tree.leaves if self.is_dark(tree, leaf)]
        if not dark:
            self.localizer.lit(tree.root, tree.leaves)
            return False
        diagnosis = self.localizer.dark(tree, dark)
        assert diagnosis.quarantine, "something is dark, and nobody is suspected"
        assert not diagnosis.clear & diagnosis.quarantine.keys()
        assert all(reason.startswith(NO_LIGHT) for reason in diagnosis.quarantine.values())
        for element in diagnosis.clear:
            self.quarantined.pop(element, None)
        self.quarantined |= diagnosis.quarantine
        return True

    def run(self, ports, most=20):
        """Attempt until it is lit or hopeless; how often."""
        for count in range(most):
            if not self.attempt(ports):
                return count
        raise AssertionError("it never comes to an end")


groups = st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4, unique=True)


@given(st.lists(groups, min_size=1, max_size=6))
def test_nobody_healthy_is_ever_suspected(patients):
    clinic = Clinic([])
    for ports in patients:
        assert clinic.attempt(ports) is False
    assert clinic.quarantined == {}


@given(groups, st.sampled_from(OUTPUTS))
def test_one_bad_output_is_found_and_nothing_else_is_condemned(ports, output):
    clinic = Clinic([output])
    clinic.run(ports)
    assert clinic.quarantined.keys() <= {output}
    assert clinic.attempt(ports) is False, "the group is served"


@given(groups, st.sampled_from(LEAVES))
def test_one_bad_receiver_is_found_after_two_outputs_and_the_outputs_are_cleared(ports, bad):
    clinic = Clinic([bad.element])
    clinic.run(ports)
    assert clinic.quarantined.keys() == ({bad.element} if bad in ports else set())


@given(groups, st.sampled_from(sorted(SPLITTERS)))
def test_one_bad_splitter_is_found_and_neither_outputs_nor_receivers_are_condemned(ports, bad):
    clinic = Clinic([bad])
    clinic.run(ports)
    assert clinic.quarantined.keys() <= {bad}
    assert clinic.attempt(ports) is False


@given(st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4, unique=True))
def test_one_bad_transmitter_is_found_and_all_splitters_are_cleared(ports):
    clinic = Clinic([ROOT.element])
    clinic.run(ports)
    assert clinic.quarantined.keys() == {ROOT.element}


@given(
    st.lists(groups, min_size=1, max_size=5),
    st.sets(st.sampled_from([*OUTPUTS, *(p.element for p in LEAVES)]), max_size=4),
)
def test_any_damage_comes_to_an_end(patients, broken):
    """Each group is lit, or given up for want of hardware, after few attempts; a lit group has no broken part."""
    clinic = Clinic(broken)
    for ports in patients:
        clinic.run(ports)
        tree = clinic.tree(ports)
        assert tree is None or not any(clinic.is_dark(tree, leaf) for leaf in tree.leaves)


@given(groups, st.integers(2, 4))
def test_light_between_two_failures_proves_a_receiver_good(ports, times):
    """Dark over a second output, but lit in between: the output is to blame each time."""
    clinic = Clinic([])
    for _ in range(times):
        tree = clinic.tree(ports)
        if tree is None:
            return
        leaf = tree.leaves[0]
        diagnosis = clinic.localizer.dark(tree, [leaf.port.output])
        assert diagnosis.quarantine.keys() == {tree.feed_element(leaf)}
        clinic.quarantined |= diagnosis.quarantine
        assert clinic.attempt(ports) is not True
