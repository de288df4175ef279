"""The fault localizer against broken hardware: quarantined and cleared elements, and termination."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.light.fault_localizer import NO_LIGHT, FaultLocalizer
from blast_controller.core.light.light_tree import build
from tests.support.controller.core import make_fabric

FABRIC = make_fabric(6, [4, 4, 2])
ROOT = FABRIC.racks["r1"].optical_ports[0]
LEAVES = [FABRIC.racks[f"r{n}"].optical_ports[0] for n in range(2, 7)]
OUTPUTS = [s.output_element(output) for s in FABRIC.splitters.values() for output in s.outputs]
SPLITTERS = {s.element: s for s in FABRIC.splitters.values()}


class LightBench:
    """A test bench that lights groups on usable hardware and reports dark leaves to the localizer.

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
        """Light a group once; return whether a leaf was dark, or None if no hardware is left."""
        tree = self.tree(ports)
        if tree is None:
            return None
        dark = [leaf.port.output for leaf in tree.leaves if self.is_dark(tree, leaf)]
        if not dark:
            self.localizer.lit(tree.root, tree.leaves)
            return False
        diagnosis = self.localizer.dark(tree, dark)
        assert diagnosis.quarantine, "a leaf is dark, and no element is suspected"
        assert not diagnosis.clear & diagnosis.quarantine.keys()
        assert all(reason.startswith(NO_LIGHT) for reason in diagnosis.quarantine.values())
        for element in diagnosis.clear:
            self.quarantined.pop(element, None)
        self.quarantined |= diagnosis.quarantine
        return True

    def run(self, ports, max_attempts=20):
        """Attempt until the group is lit or no hardware is left; return the number of dark attempts."""
        for count in range(max_attempts):
            if not self.attempt(ports):
                return count
        raise AssertionError("the attempts never end")


groups = st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4, unique=True)


@given(st.lists(groups, min_size=1, max_size=6))
def test_localizer_never_suspects_healthy_hardware(port_groups):
    bench = LightBench([])
    for ports in port_groups:
        assert bench.attempt(ports) is False
    assert bench.quarantined == {}


@given(groups, st.sampled_from(OUTPUTS))
def test_localizer_quarantines_only_the_bad_output(ports, output):
    bench = LightBench([output])
    bench.run(ports)
    assert bench.quarantined.keys() <= {output}
    assert bench.attempt(ports) is False, "the group is served"


@given(groups, st.sampled_from(LEAVES))
def test_localizer_quarantines_only_the_bad_receiver(ports, bad):
    bench = LightBench([bad.element])
    bench.run(ports)
    assert bench.quarantined.keys() == ({bad.element} if bad in ports else set())


@given(groups, st.sampled_from(sorted(SPLITTERS)))
def test_localizer_quarantines_only_the_bad_splitter(ports, bad):
    bench = LightBench([bad])
    bench.run(ports)
    assert bench.quarantined.keys() <= {bad}
    assert bench.attempt(ports) is False


@given(st.lists(st.sampled_from(LEAVES), min_size=2, max_size=4, unique=True))
def test_localizer_quarantines_only_the_bad_transmitter(ports):
    bench = LightBench([ROOT.element])
    bench.run(ports)
    assert bench.quarantined.keys() == {ROOT.element}


@given(
    st.lists(groups, min_size=1, max_size=5),
    st.sets(st.sampled_from([*OUTPUTS, *(p.element for p in LEAVES)]), max_size=4),
)
def test_localizer_terminates_for_any_damage(port_groups, broken):
    """Each group is lit, or given up for lack of hardware, after few attempts; a lit group has no broken part."""
    bench = LightBench(broken)
    for ports in port_groups:
        bench.run(ports)
        tree = bench.tree(ports)
        assert tree is None or not any(bench.is_dark(tree, leaf) for leaf in tree.leaves)


@given(groups, st.integers(2, 4))
def test_light_between_two_failures_clears_the_receiver(ports, times):
    """Dark over a second output, but lit in between: the output is to blame each time."""
    bench = LightBench([])
    for _ in range(times):
        tree = bench.tree(ports)
        if tree is None:
            return
        leaf = tree.leaves[0]
        diagnosis = bench.localizer.dark(tree, [leaf.port.output])
        assert diagnosis.quarantine.keys() == {tree.feed_element(leaf)}
        bench.quarantined |= diagnosis.quarantine
        assert bench.attempt(ports) is not True
