"""Random wirings against an oracle that knows the truth: what is named is exactly what is not as configured."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.core import make_fabric
from tests.support.fibre_wiring import Played, Wiring

SIZES = st.tuples(st.integers(1, 9), st.lists(st.integers(3, 6), max_size=3), st.integers(1, 2))


def wired(sizes) -> Wiring:
    racks, splitters, ports = sizes
    return Wiring(make_fabric(racks, tuple(splitters), ports=ports))


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_a_right_fabric_has_no_faults_and_nothing_is_waited_for(sizes):
    wiring = wired(sizes)
    played = Played(wiring)
    assert played.faults == []
    assert played.waits == 0
    legs, ports = sum(s.ways for s in wiring.splitters), len(wiring.ports)
    growth = 1 + max(ports - 1, 1).bit_length()
    assert len(played.rounds) <= growth + -(-legs // ports) + len(wiring.splitters)


@given(st.integers(1, 8), st.data())
@settings(max_examples=300, deadline=None)
def test_any_muddle_of_port_fibres_is_found_fibre_by_fibre(racks, data):
    """Every transmit and every receive fibre anywhere, or nowhere."""
    wiring = Wiring(make_fabric(racks))
    ends = [*wiring.ports, *[None] * racks]
    wiring.at_input = dict(zip(wiring.at_input, data.draw(st.permutations(ends)), strict=False))
    wiring.at_output = dict(zip(wiring.at_output, data.draw(st.permutations(ends)), strict=False))
    assume(any(wiring.at_input.values()) and any(wiring.at_output.values()))
    said = Played(wiring).said
    for port in wiring.ports:
        sentence = said.pop(port.element, "")
        transmit, receive = wiring.at_input[port.input] == port, wiring.at_output[port.output] == port
        if transmit or receive:
            assert ("transmit" in sentence, "receive" in sentence) == (not transmit, not receive)
        else:
            assert sentence
    assert said == {}


@given(st.integers(1, 8), st.data())
@settings(max_examples=200, deadline=None)
def test_the_map_is_the_truth_whatever_is_plugged_where(racks, data):
    """Ports, legs and splitter inputs anywhere, or nowhere: all that the survey believes to know is so."""
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
@settings(max_examples=400, deadline=None)
def test_faults_that_do_not_touch_each_other_are_named_exactly(sizes, faults):
    wiring = wired(sizes)
    bench = Bench(wiring)
    for kind, one, other in faults[:4]:
        getattr(bench, kind)(one, other)
    untouched = [port for port in wiring.ports if port.element not in bench.expected]
    assume(untouched)
    assert Played(wiring).said == bench.expected


class Bench:
    """Breaks fibres, each element and each splitter once, and knows what has to be said of it."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.expected: dict[str, str] = {}
        self._touched: set[object] = set()
        legs = [(i, end) for i, end in wiring.at_input.items()]
        self._fibres = [("input", i, end) for i, end in legs]
        self._fibres += [("output", o, end) for o, end in wiring.at_output.items()]

    def swap(self, one: int, other: int) -> None:
        """Two fibres on one side; legs of one splitter are all alike, so those are of two."""
        fibres = [f for f in self._fibres if f[0] == ("input" if one % 2 else "output") and f[2] not in self._touched]
        if len(fibres) < 2:
            return
        (side, place, end), (_, far_place, far_end) = fibres[one % len(fibres)], fibres[other % len(fibres)]
        if end == far_end:
            return
        getattr(self.wiring, f"swap_{side}s")(place, far_place)
        self._touched |= {end, far_end}
        self._say(side, place, f"is swapped with {self._fibre(side, far_place, far_end)}")
        self._say(side, far_place, f"is swapped with {self._fibre(side, place, end)}")

    def dead(self, one: int, other: int) -> None:
        fibres = [f for f in self._fibres if f[2] not in self._touched]
        if not fibres:
            return
        side, place, end = fibres[one % len(fibres)]
        self._touched.add(end)
        (self.wiring.at_input if side == "input" else self.wiring.at_output)[place] = None
        if side == "input":
            self._say(side, place, f"is dead: none of its light comes in at input {place} of ocs1")
        elif isinstance(end, str):
            sentence = f"no light comes out of any of its legs when output {place} of ocs1 is lit"
            self.expected[f"splitter:{end}"] = sentence
        else:
            self._say(side, place, f"is dead: no light arrives from output {place} of ocs1")

    def reverse(self, one: int, other: int) -> None:
        ports = [port for port in self.wiring.ports if port not in self._touched]
        if not ports:
            return
        port = ports[one % len(ports)]
        self._touched.add(port)
        self.wiring.at_input[port.input] = self.wiring.at_output[port.output] = None
        self.expected[port.element] = "no light passes by its transmit fibre or its receive fibre; they may be reversed"

    def _say(self, side: str, place: int, what: str) -> None:
        end = next(found for s, number, found in self._fibres if (s, number) == (side, place))
        if not isinstance(end, str):
            fibre = "its transmit fibre" if side == "input" else "its receive fibre"
            self.expected[end.element] = f"{fibre} {what}"
        elif side == "input":
            self.expected[f"leg:{end}/{place}"] = f"the leg {what}"
        else:
            self.expected[f"splitter:{end}"] = f"the fibre to its input {what}"

    def _fibre(self, side: str, place: int, end: object) -> str:
        if not isinstance(end, str):
            return f"the {'transmit' if side == 'input' else 'receive'} fibre of {end.element}"
        return f"leg:{end}/{place}" if side == "input" else f"the input of splitter:{end}"
