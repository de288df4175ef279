"""The survey and the judge on wirings with one fault each: what is named, in which words, and at what cost."""

from itertools import pairwise

import pytest

from tests.support.core import make_fabric
from tests.support.fibre_wiring import Played, Wiring


@pytest.fixture
def wiring():
    """Five racks; a splitter 1:4 and one 1:3."""
    return Wiring(make_fabric(5, (4, 3)))


def port(wiring, number):
    return wiring.ports[number - 1]


@pytest.mark.parametrize(("racks", "splitters"), [(1, ()), (2, (4,)), (5, (4, 3)), (32, (4, 4, 8, 8, 16, 16))])
def test_a_right_fabric_has_no_faults_and_nothing_is_waited_for(racks, splitters):
    played = Played(Wiring(make_fabric(racks, splitters)))
    assert played.faults == []
    assert played.waits == 0


def test_a_thousand_ports_and_fifty_splitters_take_a_dozen_rounds():
    played = Played(Wiring(make_fabric(1000, (16,) * 50)))
    assert played.faults == []
    assert len(played.rounds) <= 13


def test_transmit_fibres_swapped(wiring):
    wiring.swap_inputs(port(wiring, 2).input, port(wiring, 4).input)
    assert Played(wiring).said == {
        "port:r2/50": "its transmit fibre is swapped with the transmit fibre of port:r4/50",
        "port:r4/50": "its transmit fibre is swapped with the transmit fibre of port:r2/50",
    }


def test_receive_fibres_swapped(wiring):
    wiring.swap_outputs(port(wiring, 1).output, port(wiring, 5).output)
    assert Played(wiring).said == {
        "port:r1/50": "its receive fibre is swapped with the receive fibre of port:r5/50",
        "port:r5/50": "its receive fibre is swapped with the receive fibre of port:r1/50",
    }


def test_a_duplex_cable_swapped_even_where_there_are_only_two():
    wiring = Wiring(make_fabric(2, (4,)))
    first, second = wiring.ports
    wiring.swap_inputs(first.input, second.input)
    wiring.swap_outputs(first.output, second.output)
    assert Played(wiring).said == {
        first.element: f"both its fibres are swapped with those of {second.element}",
        second.element: f"both its fibres are swapped with those of {first.element}",
    }


def test_a_patch_panel_that_is_off_by_one(wiring):
    inputs = [p.input for p in wiring.ports]
    for one, other in pairwise(inputs):
        wiring.swap_inputs(one, other)
    said = Played(wiring).said
    assert set(said) == {p.element for p in wiring.ports}
    assert said["port:r2/50"] == "its transmit fibre is at input 1 of ocs1 instead of input 2"


@pytest.mark.parametrize("number", range(1, 6))
def test_dead_fibres(wiring, number):
    faulty = port(wiring, number)
    wiring.at_input[faulty.input] = None
    assert Played(wiring).said == {
        faulty.element: f"its transmit fibre is dead: none of its light comes in at input {faulty.input} of ocs1"
    }
    wiring.at_output[faulty.output] = None
    both = {faulty.element: "no light passes by its transmit fibre or its receive fibre; they may be reversed"}
    assert Played(wiring).said == both
    wiring.at_input[faulty.input] = faulty
    assert Played(wiring).said == {
        faulty.element: f"its receive fibre is dead: no light arrives from output {faulty.output} of ocs1"
    }


def test_a_dead_leg(wiring):
    wiring.at_input[7] = None
    assert Played(wiring).said == {"leg:s1/7": "the leg is dead: none of its light comes in at input 7 of ocs1"}


def test_a_dead_splitter_input_is_one_fault(wiring):
    wiring.at_output[wiring.splitters[0].input] = None
    assert Played(wiring).said == {
        "splitter:s1": "no light comes out of any of its legs when output 6 of ocs1 is lit",
    }


def test_splitter_inputs_swapped(wiring):
    one, two = wiring.splitters
    wiring.swap_outputs(one.input, two.input)
    assert Played(wiring).said == {
        "splitter:s1": "the fibre to its input is swapped with the input of splitter:s2",
        "splitter:s2": "the fibre to its input is swapped with the input of splitter:s1",
    }


def test_legs_swapped_between_splitters(wiring):
    wiring.swap_inputs(wiring.splitters[0].outputs[1], wiring.splitters[1].outputs[2])
    assert Played(wiring).said == {
        "leg:s1/7": "the leg is swapped with leg:s2/12",
        "leg:s2/12": "the leg is swapped with leg:s1/7",
    }


@pytest.mark.parametrize("racks", [1, 3, 20])
def test_two_pairs_of_legs_swapped(racks):
    wiring = Wiring(make_fabric(racks, (5, 5)))
    one, two = (splitter.outputs for splitter in wiring.splitters)
    wiring.swap_inputs(one[0], two[3])
    wiring.swap_inputs(one[4], two[1])
    pairs = ((one[0], two[1]), (one[4], two[3]))
    expected = {f"leg:s1/{a}": f"the leg is swapped with leg:s2/{b}" for a, b in pairs}
    assert Played(wiring).said == expected | {f"leg:s2/{b}": f"the leg is swapped with leg:s1/{a}" for a, b in pairs}


def test_what_is_found_is_found_for_one_leg_only():
    """Two legs of s1 hold legs of s2: one in exchange; of the other and a third, nothing is where the config says."""
    wiring = Wiring(make_fabric(12, (6, 6)))
    one, two = (splitter.outputs for splitter in wiring.splitters)
    wiring.swap_inputs(one[0], two[0])
    wiring.swap_inputs(one[1], two[1])
    wiring.at_input |= {two[1]: None, two[2]: None}
    assert Played(wiring).said == {
        f"leg:s1/{one[0]}": f"the leg is swapped with leg:s2/{two[0]}",
        f"leg:s2/{two[0]}": f"the leg is swapped with leg:s1/{one[0]}",
        f"leg:s1/{one[1]}": f"the leg is dead: none of its light comes in at input {one[1]} of ocs1",
        f"leg:s2/{two[1]}": f"the leg is at input {one[1]} of ocs1 instead of input {two[1]}",
        f"leg:s2/{two[2]}": f"the leg is dead: none of its light comes in at input {two[2]} of ocs1",
    }


def test_no_splitter_is_found_at_two_outputs():
    """Legs are so mixed that the first output lights most of s2, the second one leg of each."""
    wiring = Wiring(make_fabric(9, (3, 3, 3)))
    lit_by = ("s1", "s2", "s3", "s1", "s1", "s2", "s2", "s3", "s3")
    wiring.at_input |= dict(zip(range(10, 19), lit_by, strict=True))
    said = Played(wiring).said
    assert {element: sentence for element, sentence in said.items() if element.startswith("splitter:")} == {
        "splitter:s1": "the fibre to its input is swapped with the input of splitter:s2",
        "splitter:s2": "the fibre to its input is swapped with the input of splitter:s1",
    }


def test_legs_of_one_splitter_are_all_alike(wiring):
    wiring.swap_inputs(wiring.splitters[0].outputs[0], wiring.splitters[0].outputs[2])
    assert Played(wiring).faults == []


def test_a_transmit_fibre_swapped_with_a_leg(wiring):
    wiring.swap_inputs(port(wiring, 3).input, 8)
    assert Played(wiring).said == {
        "port:r3/50": "its transmit fibre is swapped with leg:s1/8",
        "leg:s1/8": "the leg is swapped with the transmit fibre of port:r3/50",
    }


def test_a_receive_fibre_swapped_with_a_splitters_input(wiring):
    wiring.swap_outputs(port(wiring, 3).output, wiring.splitters[1].input)
    assert Played(wiring).said == {
        "port:r3/50": "its receive fibre is swapped with the input of splitter:s2",
        "splitter:s2": "the fibre to its input is swapped with the receive fibre of port:r3/50",
    }


def test_a_fabric_without_any_light(wiring):
    wiring.at_input = dict.fromkeys(wiring.at_input)
    played = Played(wiring)
    assert set(played.said) == {p.element for p in wiring.ports}
    assert set(played.said.values()) == {"no light passes from it to any free port, or to it from any"}
    assert played.map.probed_splitters == ()
    assert len(played.rounds) <= 16


def test_one_free_port_alone_probes_every_leg():
    wiring = Wiring(make_fabric(1, (4, 3)))
    wiring.at_input[4] = None
    assert Played(wiring).said == {"leg:s1/4": "the leg is dead: none of its light comes in at input 4 of ocs1"}


def test_light_that_comes_out_in_the_middle_of_others(wiring):
    """A port that is in use is not probed, but sees what does not belong to it."""
    held = port(wiring, 5)
    wiring.swap_inputs(port(wiring, 1).input, held.input)
    wiring.at_output[held.output] = held
    live = CrossOver(wiring, held)
    assert Played(live, ports=wiring.ports[:4], splitters=wiring.splitters).said == {
        "port:r1/50": "its transmit fibre is dead: none of its light comes in at input 1 of ocs1; "
        "it comes out at port:r5/50"
    }


class CrossOver:
    """A wiring on which somebody else's circuit leads the input of a port to its own output."""

    def __init__(self, wiring, held):
        self._wiring, self._held = wiring, held
        self.switch = wiring.switch

    def seen(self, circuits, senders):
        live = type(circuits[0])(self.switch, self._held.input, self._held.output)
        return self._wiring.seen((*circuits, live), senders)


@pytest.mark.parametrize(("racks", "ports_back", "splitters_back"), [(20, 13, set()), (4, 0, {"splitter:s1"})])
def test_what_is_right_is_given_back_and_not_used_again(racks, ports_back, splitters_back):
    """Seven legs need seven ports at once; with four ports, one splitter is done before the other."""
    wiring = Wiring(make_fabric(racks, (4, 3)))
    dead = wiring.splitters[1].outputs[0]
    wiring.at_input[dead] = None
    played = Played(wiring)
    assert set(played.said) == {f"leg:s2/{dead}"}
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
