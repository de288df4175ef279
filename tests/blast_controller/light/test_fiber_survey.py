"""Surveys of random wirings against an oracle: they report exactly the deviations from the configuration."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.controller.core import make_fabric
from tests.support.controller.core_light import Played, Wiring

SIZES = st.tuples(st.integers(1, 9), st.lists(st.integers(3, 6), max_size=3), st.integers(1, 2))


def wired(sizes) -> Wiring:
    racks, splitters, ports = sizes
    return Wiring(make_fabric(racks, tuple(splitters), ports=ports))


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_correct_fabric_has_no_faults_and_no_waits(sizes):
    wiring = wired(sizes)
    played = Played(wiring)
    assert played.faults == []
    assert played.waits == 0
    outputs, ports = sum(s.fan_out for s in wiring.splitters), len(wiring.ports)
    growth = 1 + max(ports - 1, 1).bit_length()
    assert len(played.rounds) <= growth + -(-outputs // ports) + len(wiring.splitters)


@given(st.integers(1, 8), st.data())
@settings(max_examples=150, deadline=None)
def test_survey_finds_each_misplaced_port_fiber(racks, data):
    """Connect every transmit and every receive fiber anywhere or nowhere."""
    wiring = Wiring(make_fabric(racks))
    ends = [*wiring.ports, *[None] * racks]
    wiring.at_input = dict(zip(wiring.at_input, data.draw(st.permutations(ends)), strict=False))
    wiring.at_output = dict(zip(wiring.at_output, data.draw(st.permutations(ends)), strict=False))
    assume(any(wiring.at_input.values()) and any(wiring.at_output.values()))
    reported = Played(wiring).sentences
    for port in wiring.ports:
        sentence = reported.pop(port.element, "")
        transmit, receive = wiring.at_input[port.input] == port, wiring.at_output[port.output] == port
        if transmit or receive:
            assert ("transmit" in sentence, "receive" in sentence) == (not transmit, not receive)
        else:
            assert sentence
    assert reported == {}


@given(st.integers(1, 8), st.data())
@settings(max_examples=100, deadline=None)
def test_survey_map_matches_any_wiring(racks, data):
    """Connect ports, outputs and splitter inputs anywhere or nowhere: all entries of the map are true."""
    wiring = Wiring(make_fabric(racks, tuple(data.draw(st.lists(st.integers(2, 4), max_size=3)))))
    inputs, outputs = [*wiring.at_input.values(), None, None], [*wiring.at_output.values(), None, None]
    wiring.at_input = dict(zip(wiring.at_input, data.draw(st.permutations(inputs)), strict=False))
    wiring.at_output = dict(zip(wiring.at_output, data.draw(st.permutations(outputs)), strict=False))
    found = Played(wiring).map
    assert all(wiring.at_input[i] == port for i, port in found.sources.items())
    assert all(wiring.at_output[o] == port for o, port in found.sinks.items())
    names = {s.name for s in wiring.splitters}
    for o, i in found.glass:
        assert wiring.at_output[o] in names
        assert wiring.at_output[o] == wiring.at_input[i]


FAULTS = st.lists(st.tuples(st.sampled_from(["swap", "dead", "reverse"]), st.integers(0, 99), st.integers(0, 99)))


@given(SIZES, FAULTS)
@settings(max_examples=250, deadline=None)
def test_survey_names_independent_faults_exactly(sizes, faults):
    wiring = wired(sizes)
    bench = Bench(wiring)
    for kind, one, other in faults[:4]:
        getattr(bench, kind)(one, other)
    untouched = [port for port in wiring.ports if port.element not in bench.expected]
    assume(untouched)
    assert Played(wiring).sentences == bench.expected


class Bench:
    """A fault generator that breaks each element and splitter once and records the expected sentences."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.expected: dict[str, str] = {}
        self._touched: set[object] = set()
        outputs = [(i, end) for i, end in wiring.at_input.items()]
        self._fibers = [("input", i, end) for i, end in outputs]
        self._fibers += [("output", o, end) for o, end in wiring.at_output.items()]

    def swap(self, one: int, other: int) -> None:
        """Swap two fibers on one side; outputs are of two splitters, since those of one are interchangeable."""
        fibers = [f for f in self._fibers if f[0] == ("input" if one % 2 else "output") and f[2] not in self._touched]
        if len(fibers) < 2:
            return
        (side, place, end), (_, far_place, far_end) = fibers[one % len(fibers)], fibers[other % len(fibers)]
        if end == far_end:
            return
        getattr(self.wiring, f"swap_{side}s")(place, far_place)
        self._touched |= {end, far_end}
        self._expect(side, place, f"is swapped with {self._fiber(side, far_place, far_end)}")
        self._expect(side, far_place, f"is swapped with {self._fiber(side, place, end)}")

    def dead(self, one: int, other: int) -> None:
        fibers = [f for f in self._fibers if f[2] not in self._touched]
        if not fibers:
            return
        side, place, end = fibers[one % len(fibers)]
        self._touched.add(end)
        (self.wiring.at_input if side == "input" else self.wiring.at_output)[place] = None
        if side == "input":
            self._expect(side, place, f"is dead: no light arrives at input {place} of ocs1")
        elif isinstance(end, str):
            sentence = f"no light arrives from any of its outputs when output {place} of ocs1 is lit"
            self.expected[f"splitter:{end}"] = sentence
        else:
            self._expect(side, place, f"is dead: no light arrives from output {place} of ocs1")

    def reverse(self, one: int, other: int) -> None:
        ports = [port for port in self.wiring.ports if port not in self._touched]
        if not ports:
            return
        port = ports[one % len(ports)]
        self._touched.add(port)
        self.wiring.at_input[port.input] = self.wiring.at_output[port.output] = None
        self.expected[port.element] = (
            "no light passes through its transmit fiber or its receive fiber; they may be reversed"
        )

    def _expect(self, side: str, place: int, fault: str) -> None:
        end = next(found for s, number, found in self._fibers if (s, number) == (side, place))
        if not isinstance(end, str):
            fiber = "its transmit fiber" if side == "input" else "its receive fiber"
            self.expected[end.element] = f"{fiber} {fault}"
        elif side == "input":
            self.expected[f"output:{end}/{place}"] = f"the output {fault}"
        else:
            self.expected[f"splitter:{end}"] = f"the fiber to its input {fault}"

    def _fiber(self, side: str, place: int, end: object) -> str:
        if not isinstance(end, str):
            return f"the {'transmit' if side == 'input' else 'receive'} fiber of {end.element}"
        return f"output:{end}/{place}" if side == "input" else f"the input of splitter:{end}"


@pytest.fixture
def wiring():
    """Return a wiring of five racks with splitters 1:4 and 1:3."""
    return Wiring(make_fabric(5, (4, 3)))


def port(wiring, number):
    return wiring.ports[number - 1]


def test_survey_of_a_thousand_ports_takes_13_rounds_or_fewer():
    played = Played(Wiring(make_fabric(1000, (16,) * 50)))
    assert played.faults == []
    assert len(played.rounds) <= 13


def test_survey_finds_the_swapped_duplex_cables_of_two_ports():
    wiring = Wiring(make_fabric(2, (4,)))
    first, second = wiring.ports
    wiring.swap_inputs(first.input, second.input)
    wiring.swap_outputs(first.output, second.output)
    assert Played(wiring).sentences == {
        first.element: f"both its fibers are swapped with those of {second.element}",
        second.element: f"both its fibers are swapped with those of {first.element}",
    }


def test_survey_finds_a_patch_panel_shifted_by_one(wiring):
    inputs = [p.input for p in wiring.ports]
    for one, other in pairwise(inputs):
        wiring.swap_inputs(one, other)
    reported = Played(wiring).sentences
    assert set(reported) == {p.element for p in wiring.ports}
    assert reported["port:r2/50"] == "its transmit fiber is at input 1 of ocs1 instead of input 2"


def test_survey_assigns_each_finding_to_one_output():
    """Two outputs of s1 are wired as outputs of s2, one in exchange; the other and a third are not where configured."""
    wiring = Wiring(make_fabric(12, (6, 6)))
    one, two = (splitter.outputs for splitter in wiring.splitters)
    wiring.swap_inputs(one[0], two[0])
    wiring.swap_inputs(one[1], two[1])
    wiring.at_input |= {two[1]: None, two[2]: None}
    assert Played(wiring).sentences == {
        f"output:s1/{one[0]}": f"the output is swapped with output:s2/{two[0]}",
        f"output:s2/{two[0]}": f"the output is swapped with output:s1/{one[0]}",
        f"output:s1/{one[1]}": f"the output is dead: no light arrives at input {one[1]} of ocs1",
        f"output:s2/{two[1]}": f"the output is at input {one[1]} of ocs1 instead of input {two[1]}",
        f"output:s2/{two[2]}": f"the output is dead: no light arrives at input {two[2]} of ocs1",
    }


def test_survey_locates_each_splitter_at_one_output():
    """Outputs are so mixed that the first output lights most of s2, the second one output of each."""
    wiring = Wiring(make_fabric(9, (3, 3, 3)))
    lit_by = ("s1", "s2", "s3", "s1", "s1", "s2", "s2", "s3", "s3")
    wiring.at_input |= dict(zip(range(10, 19), lit_by, strict=True))
    reported = Played(wiring).sentences
    assert {element: sentence for element, sentence in reported.items() if element.startswith("splitter:")} == {
        "splitter:s1": "the fiber to its input is swapped with the input of splitter:s2",
        "splitter:s2": "the fiber to its input is swapped with the input of splitter:s1",
    }


def test_swapped_outputs_of_one_splitter_are_no_fault(wiring):
    wiring.swap_inputs(wiring.splitters[0].outputs[0], wiring.splitters[0].outputs[2])
    assert Played(wiring).faults == []


def test_survey_reports_every_port_of_a_dark_fabric(wiring):
    wiring.at_input = dict.fromkeys(wiring.at_input)
    played = Played(wiring)
    assert set(played.sentences) == {p.element for p in wiring.ports}
    assert set(played.sentences.values()) == {"no light passes from it to any free port, or from any free port to it"}
    assert played.map.probed_splitters == ()
    assert len(played.rounds) <= 16


def test_survey_reports_foreign_light_at_a_port_in_use(wiring):
    """A port in use is not probed, but it receives misdirected light."""
    held = port(wiring, 5)
    wiring.swap_inputs(port(wiring, 1).input, held.input)
    wiring.at_output[held.output] = held
    live = CrossOver(wiring, held)
    assert Played(live, ports=wiring.ports[:4], splitters=wiring.splitters).sentences == {
        "port:r1/50": "its transmit fiber is dead: no light arrives at input 1 of ocs1; light arrives at port:r5/50"
    }


class CrossOver:
    """A wiring with a foreign circuit from the input of a port to its own output."""

    def __init__(self, wiring, held):
        self._wiring, self._held = wiring, held
        self.switch = wiring.switch

    def seen(self, circuits, senders):
        live = type(circuits[0])(self.switch, self._held.input, self._held.output)
        return self._wiring.seen((*circuits, live), senders)


@pytest.mark.parametrize(("racks", "ports_back", "splitters_back"), [(20, 13, set()), (4, 0, {"splitter:s1"})])
def test_survey_releases_verified_elements_for_good(racks, ports_back, splitters_back):
    """Seven outputs need seven ports at once; with four ports, one splitter is done before the other."""
    wiring = Wiring(make_fabric(racks, (4, 3)))
    dead = wiring.splitters[1].outputs[0]
    wiring.at_input[dead] = None
    played = Played(wiring)
    assert set(played.sentences) == {f"output:s2/{dead}"}
    back = played.rounds[-1].done
    assert len([e for e in back if e.startswith("port:")]) == ports_back
    assert {e for e in back if e.startswith("splitter:")} == splitters_back
    ends = {p.element: ({p.input}, {p.output}) for p in wiring.ports}
    ends |= {s.element: (set(s.outputs), {s.input}) for s in wiring.splitters}
    for round_ in played.rounds:
        assert not {s.element for s in round_.senders} & round_.done
        for inputs, outputs in (ends[element] for element in round_.done):
            assert not inputs & {c.input for c in round_.circuits}
            assert not outputs & {c.output for c in round_.circuits}
