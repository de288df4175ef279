"""Diagnosis of fibers: each element that is not wired as configured, with a description of the fault.

Every fiber end has a place at the switch: inputs take the ports' transmit fibers and the splitters' outputs, outputs
feed the ports' receive fibers and the splitters' inputs. An element is reported if its own fiber is not in its place.
Splitters are interchangeable and so are the outputs of one, so the fiber that lights most of a splitter's outputs
counts as its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from blast_controller.core.fibers.fiber_survey import FiberMap
from blast_controller.core.model.fabric import OpticalPort, Splitter
from blast_controller.core.model.identifiers import ElementId


@dataclass(frozen=True, slots=True)
class FiberFault:
    """One element that is not wired as configured."""

    element: ElementId
    sentence: str


@dataclass(frozen=True, slots=True)
class _Misplaced:
    """The fiber end of `place`, found at `now` (None: not found), possibly swapped with the one of that place."""

    place: int
    now: int | None = None
    exchanged: bool = False


def judge(found: FiberMap) -> list[FiberFault]:
    """Return the differences between survey and configuration, by element: ports, splitters, outputs."""
    return _Judge(found).faults()


class _Judge:
    def __init__(self, found: FiberMap) -> None:
        self._map = found
        self._ports = {port.element: port for port in found.ports}
        splitters = found.probed_splitters
        self._splitters = {splitter.element: splitter for splitter in splitters}
        self._at_inputs = {port.input: port.element for port in found.ports}
        self._at_inputs |= {output: splitter.element for splitter in splitters for output in splitter.outputs}
        self._at_outputs = {port.output: port.element for port in found.ports}
        self._at_outputs |= {splitter.input: splitter.element for splitter in splitters}
        lit_by = _splitters_by_output(found)
        incoming = {i: port.element for i, port in found.sources.items()}
        incoming |= {i: lit_by[o].element for o, i in found.glass if o in lit_by}
        outgoing = {o: port.element for o, port in found.sinks.items()}
        outgoing |= {o: splitter.element for o, splitter in lit_by.items()}
        self._inputs = {m.place: m for m in _misplaced(self._at_inputs, incoming)}
        self._outputs = {m.place: m for m in _misplaced(self._at_outputs, outgoing)}

    def faults(self) -> list[FiberFault]:
        found = [FiberFault(e, s) for e, port in self._ports.items() if (s := self._of_port(port))]
        for element, splitter in self._splitters.items():
            feed = self._outputs.get(splitter.input)
            if feed is not None:
                found.append(FiberFault(element, self._of_feed(feed)))
            if feed is None or feed.now is not None:
                found += self._of_outputs(splitter)
        return found

    # ------------------------------------------------------------------------------------------ sentences

    def _of_port(self, port: OpticalPort) -> str:
        transmit, receive = self._inputs.get(port.input), self._outputs.get(port.output)
        if transmit is None:
            return self._of_receive(receive) if receive else ""
        if receive is None:
            return self._of_transmit(port, transmit)
        if not self._map.sources:
            return "no light passes from it to any free port, or from any free port to it"
        if transmit.now is None and receive.now is None and port not in self._map.strays:
            return "no light passes through its transmit fiber or its receive fiber; they may be reversed"
        partner = self._partner(transmit)
        if partner is not None and partner == self._partner(receive):
            return f"both its fibers are swapped with those of {partner}"
        return f"{self._of_transmit(port, transmit)}; {self._of_receive(receive)}"

    def _partner(self, fiber: _Misplaced) -> str | None:
        """Return the port whose fiber is swapped with this one."""
        places = self._at_inputs if fiber is self._inputs.get(fiber.place) else self._at_outputs
        partner = places.get(fiber.now) if fiber.exchanged and fiber.now is not None else None
        return partner if partner in self._ports else None

    def _of_transmit(self, port: OpticalPort, fiber: _Misplaced) -> str:
        if fiber.now is not None:
            return self._elsewhere("its transmit fiber", "input", fiber)
        strays = sorted(self._map.strays.get(port, ()))
        hint = f"; light arrives at {', '.join(strays)}" if strays else ""
        return f"its transmit fiber is dead: no light arrives at input {fiber.place} of {self._map.switch}{hint}"

    def _of_receive(self, fiber: _Misplaced) -> str:
        if fiber.now is not None:
            return self._elsewhere("its receive fiber", "output", fiber)
        return f"its receive fiber is dead: no light arrives from output {fiber.place} of {self._map.switch}"

    def _of_feed(self, fiber: _Misplaced) -> str:
        if fiber.now is not None:
            return self._elsewhere("the fiber to its input", "output", fiber)
        return f"no light arrives from any of its outputs when output {fiber.place} of {self._map.switch} is lit"

    def _of_outputs(self, splitter: Splitter) -> Iterable[FiberFault]:
        for output in splitter.outputs:
            fiber = self._inputs.get(output)
            if fiber is not None:
                dead = f"the output is dead: no light arrives at input {output} of {self._map.switch}"
                sentence = dead if fiber.now is None else self._elsewhere("the output", "input", fiber)
                yield FiberFault(splitter.output_element(output), sentence)

    def _elsewhere(self, fiber: str, side: str, misplaced: _Misplaced) -> str:
        now = misplaced.now
        if misplaced.exchanged and now is not None:
            return f"{fiber} is swapped with {self._fiber_at(side, now)}"
        return f"{fiber} is at {side} {now} of {self._map.switch} instead of {side} {misplaced.place}"

    def _fiber_at(self, side: str, place: int) -> str:
        """Describe the fiber end that belongs to a place."""
        if side == "input":
            element = self._at_inputs[place]
            splitter = self._splitters.get(element)
            return splitter.output_element(place) if splitter else f"the transmit fiber of {element}"
        element = self._at_outputs[place]
        return f"the input of {element}" if element in self._splitters else f"the receive fiber of {element}"


def _misplaced(configured: Mapping[int, str], found: Mapping[int, str]) -> list[_Misplaced]:
    """Return the places whose own fiber is not there, and where it is: exchanges first, then whatever is left over."""
    wrong = [place for place, owner in configured.items() if found.get(place) != owner]
    exchanged: dict[int, int] = {}
    for place in wrong:
        partners = (p for p in wrong if found.get(p) == configured[place] and found.get(place) == configured[p])
        partner = next((p for p in partners if p not in exchanged), None)
        if partner is not None and place not in exchanged:
            exchanged |= {place: partner, partner: place}
    result = [_Misplaced(place, partner, exchanged=True) for place, partner in exchanged.items()]
    spare = [place for place in sorted(found) if configured.get(place) != found[place] and place not in exchanged]
    for place in wrong:
        if place not in exchanged:
            now = next((p for p in spare if found[p] == configured[place]), None)
            if now is not None:
                spare.remove(now)
            result.append(_Misplaced(place, now))
    return result


def _splitters_by_output(found: FiberMap) -> dict[int, Splitter]:
    """Map each lit output to the splitter whose outputs it lights most; in doubt, to the configured one."""
    candidates = [
        (-len({i for o, i in found.glass if o == output} & set(splitter.outputs)), splitter.input != output, output, n)
        for output in {o for o, _ in found.glass}
        for n, splitter in enumerate(found.splitters)
    ]
    named: dict[int, Splitter] = {}
    for *_, output, number in sorted(candidates):
        splitter = found.splitters[number]
        if output not in named and splitter not in named.values():
            named[output] = splitter
    return named
