"""A fabric as it is really wired, which may differ from the config, and what probes would show of it.

Light is followed fibre by fibre; nothing here knows how a survey works or what it concludes.
"""

from __future__ import annotations

from collections import defaultdict

from blast_controller.core.fibres.fibre_judge import FibreFault, judge
from blast_controller.core.fibres.fibre_survey import Pair, Round, survey
from blast_controller.core.model.fabric import CrossConnect, Fabric, OpticalPort

End = OpticalPort | str | None
"""A port, a splitter by its name, or nothing."""


class Wiring:
    """What is plugged in at each input and output of one of the fabric's switches."""

    def __init__(self, fabric: Fabric, switch: str = "ocs1") -> None:
        self.switch = switch
        self.ports = fabric.whole_ports_on(switch)
        self.splitters = [splitter for splitter in fabric.splitters.values() if splitter.switch == switch]
        self.at_input: dict[int, End] = {port.input: port for port in self.ports}
        self.at_input |= {leg: s.name for s in self.splitters for leg in s.outputs}
        self.at_output: dict[int, End] = {port.output: port for port in self.ports}
        self.at_output |= {s.input: s.name for s in self.splitters}

    def swap_inputs(self, one: int, other: int) -> None:
        self.at_input[one], self.at_input[other] = self.at_input[other], self.at_input[one]

    def swap_outputs(self, one: int, other: int) -> None:
        self.at_output[one], self.at_output[other] = self.at_output[other], self.at_output[one]

    def seen(self, circuits: tuple[CrossConnect, ...], senders: tuple[OpticalPort, ...]) -> set[Pair]:
        """Who sees a probe of whom with these circuits."""
        joined = {c.input: c.output for c in circuits}
        inputs: defaultdict[End, list[int]] = defaultdict(list)
        for number, end in self.at_input.items():
            inputs[end].append(number)
        return {(sender, end) for sender in senders for end in self._ends(sender, inputs, joined)}

    def _ends(self, sender: End, inputs: dict[End, list[int]], joined: dict[int, int]) -> set[OpticalPort]:
        reached: set[OpticalPort] = set()
        waiting, been = list(inputs[sender]), set(inputs[sender])
        while waiting:
            end = self.at_output.get(joined.get(waiting.pop(), 0))
            if isinstance(end, OpticalPort):
                reached.add(end)
            elif end is not None:
                fresh = [i for i in inputs[end] if i not in been]
                been.update(fresh)
                waiting += fresh
        return reached


class Played:
    """A survey that was played on a wiring: its rounds, what came, how many had to wait the whole time, the faults."""

    def __init__(self, wiring: Wiring, ports=None, splitters=None) -> None:
        self.rounds: list[Round] = []
        self.waits = 0
        ports = wiring.ports if ports is None else ports
        splitters = wiring.splitters if splitters is None else splitters
        going = survey(wiring.switch, ports, splitters)
        try:
            round_ = next(going)
            while True:
                self._check(round_)
                seen: set[Pair] = set()
                # Probes come one after the other, and a round that is complete hears no more.
                coming = sorted(wiring.seen(round_.circuits, round_.senders), key=str)
                while coming and not round_.complete(seen):
                    seen.add(coming.pop())
                self.waits += not round_.complete(seen)
                round_ = going.send(frozenset(seen))
        except StopIteration as end:
            self.map = end.value
        self.faults: list[FibreFault] = judge(self.map)
        self.said = {fault.element: fault.sentence for fault in self.faults}
        assert len(self.said) == len(self.faults), "an element is named twice"

    def _check(self, round_: Round) -> None:
        """A crossbar joins an input to one output only; what was given back is not touched any more."""
        assert round_.circuits
        assert round_.senders
        assert (
            len({c.input for c in round_.circuits}) == len({c.output for c in round_.circuits}) == len(round_.circuits)
        )
        self.rounds.append(round_)
