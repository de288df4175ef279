"""Survey of the fiber ends of one optical switch's free hardware, in rounds.

Theory of operation
-------------------
A probe frame has the number of its sending port, and a ToR reports the port
that received it; the circuit that it passed is not observable. Therefore every circuit but the first has one end that
is *known*: an input at which a port's light was seen to enter, or an output that was seen to lead to a port. The other
end is then observed directly, whatever is plugged in there, and becomes known itself. The first circuit is tried alone.

Known ends double with every round, and a round ends as soon as all probes that the configuration predicts have arrived:
no others can arrive then. A fabric that is wired as configured needs a few round trips; only faults take time. No round
can create a loop: one of two ends is always a ToR, which forwards no light.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence, Set
from dataclasses import dataclass, field

from blast_controller.core.model.fabric import CrossConnect, OpticalPort, Splitter
from blast_controller.core.model.identifiers import ElementId, SwitchId

MAX_SHIFTS = 8
"""Combinations of ports to try before all ports count as dark."""

Pair = tuple[OpticalPort, OpticalPort]
"""The sender and the receiver of a probe."""

Joint = tuple[int, int]
"""A circuit: switch input, switch output."""


@dataclass(frozen=True, slots=True)
class SurveyRound:
    """Set `circuits`, alone, then send a probe from each of `senders` and wait for them.

    No more can come once all of `expected` has come; where that is empty, the whole time must be waited. The survey
    no longer needs the elements `done`.
    """

    circuits: tuple[CrossConnect, ...]
    senders: tuple[OpticalPort, ...]
    expected: frozenset[Pair]
    done: frozenset[ElementId] = frozenset()

    def complete(self, seen: Set[Pair]) -> bool:
        """Return true if no other probes can arrive."""
        return bool(self.expected) and self.expected <= seen


@dataclass(slots=True)
class FiberMap:
    """The survey's result for the probed ports and splitters.

    `sources` are the ports whose transmit fiber ends at an input, `sinks` those whose receive fiber starts at an
    output, and `glass` the (output, input) pairs that a splitter connects. `strays` are elements outside the survey
    that received a port's light.
    """

    switch: SwitchId
    ports: tuple[OpticalPort, ...]
    splitters: tuple[Splitter, ...]
    sources: dict[int, OpticalPort] = field(default_factory=dict)
    sinks: dict[int, OpticalPort] = field(default_factory=dict)
    glass: set[Joint] = field(default_factory=set)
    strays: defaultdict[OpticalPort, set[str]] = field(default_factory=lambda: defaultdict(set))

    def right(self, port: OpticalPort) -> bool:
        """Return true if both fibers of a port are at their configured places."""
        return self.sources.get(port.input) == port and self.sinks.get(port.output) == port

    def whole(self, splitter: Splitter) -> bool:
        """Return true if light leaves every output."""
        return all((splitter.input, output) in self.glass for output in splitter.outputs)

    @property
    def probed_splitters(self) -> tuple[Splitter, ...]:
        """Return all splitters, or none if no port was found for their probes."""
        return self.splitters if self.sources else ()


Survey = Generator[SurveyRound, Set[Pair], FiberMap]
"""Yields rounds, is sent what was seen in each, and returns the map."""

_Trial = Generator[SurveyRound, Set[Pair], bool]
_Rounds = Generator[SurveyRound, Set[Pair], None]


def survey(switch: SwitchId, ports: Iterable[OpticalPort], splitters: Iterable[Splitter]) -> Survey:
    """Survey these ports and splitters of one switch; nothing but their inputs and outputs is connected."""
    surveyor = _Surveyor(FiberMap(switch, tuple(ports), tuple(splitters)))
    if (yield from surveyor.find_light()):
        yield from surveyor.survey_ports()
        yield from surveyor.survey_outputs()
        yield from surveyor.search_lost()
    return surveyor.map


class _Surveyor:
    def __init__(self, found: FiberMap) -> None:
        self.map = found
        self._port_at_input = {port.input: port for port in found.ports}
        self._port_at_output = {port.output: port for port in found.ports}
        self._feed_of_output = {output: s.input for s in found.splitters for output in s.outputs}
        self._probed = frozenset(found.ports)
        self._tried: set[Joint] = set()
        self._done: frozenset[ElementId] = frozenset()

    # ------------------------------------------------------------------------------------------- stages

    def find_light(self) -> _Trial:
        """Find one circuit that light passes; return true if there is one."""
        ports = self.map.ports
        for shift in range(1, min(len(ports), MAX_SHIFTS) + 1):
            ring = [(p.input, ports[(n + shift) % len(ports)].output) for n, p in enumerate(ports)]
            if (yield from self._lit(ring[:1])):
                return True
            if len(ring) > 1 and (yield from self._lit(ring[1:])):
                return (yield from self._single_out(ring[1:]))
        return False

    def _single_out(self, lit: list[Joint]) -> _Trial:
        """Bisect the circuits that pass light until one is left."""
        while len(lit) > 1:
            half = len(lit) // 2
            first = yield from self._lit(lit[:half])
            lit = lit[:half] if first else lit[half:]
        return (yield from self._lit(lit))

    def survey_ports(self) -> _Rounds:
        """Try every port's input and output against an end that is known."""
        inputs = [i for i in self._port_at_input if i not in self.map.sources]
        outputs = [o for o in self._port_at_output if o not in self.map.sinks]
        while inputs or outputs:
            into, out_of = self._known_inputs, self._known_outputs
            yield from self._lit([*zip(inputs, out_of, strict=False), *zip(into, outputs, strict=False)])
            inputs, outputs = inputs[len(out_of) :], outputs[len(into) :]

    def survey_outputs(self) -> _Rounds:
        """Feed every splitter from a known input, and lead every output to a known output."""
        self._keep_references()
        outputs = [(splitter, output) for splitter in self.map.splitters for output in splitter.outputs]
        while outputs:
            chunk = self._chunk(outputs)
            outputs = outputs[len(chunk) :]
            feeds = list(dict.fromkeys(splitter.input for splitter, _ in chunk))
            yield from self._join(feeds, [output for _, output in chunk])
            pending = {splitter for splitter, _ in outputs}
            self._finish(s.element for s in self.map.splitters if s not in pending and self.map.whole(s))

    def search_lost(self) -> _Rounds:
        """Try what stayed dark against every splitter that misses an output: fibers of one may sit at another."""
        broken = [splitter for splitter in self.map.splitters if not self.map.whole(splitter)]
        if not broken:
            return
        lit = {i for _, i in self.map.glass}
        feeding = {o for o, _ in self.map.glass}
        inputs = [
            i for i in (*self._port_at_input, *self._feed_of_output) if i not in self.map.sources and i not in lit
        ]
        outputs = [o for o in self._port_at_output if o not in self.map.sinks and o not in feeding]
        outputs += [splitter.input for splitter in broken if splitter.input not in self.map.sinks]
        width, height = len(self._known_outputs), len(self._known_inputs)
        for feeds in _parts(outputs, height):
            for ends in _parts(inputs, width):
                untried = [end for end in ends if any((feed, end) not in self._tried for feed in feeds)]
                if untried:
                    yield from self._join(feeds, untried)

    # ------------------------------------------------------------------------------------------- rounds

    def _join(self, outputs: Sequence[int], inputs: Sequence[int]) -> _Trial:
        """Connect `outputs`, each to a different port, and observe at which of `inputs` their signals return."""
        self._tried |= {(o, i) for o in outputs for i in inputs}
        feeding = zip(self._known_inputs, outputs, strict=False)
        return (yield from self._lit([*feeding, *zip(inputs, self._known_outputs, strict=False)]))

    def _lit(self, joints: Sequence[Joint]) -> _Trial:
        """Probe through these circuits; return true if a probe arrived."""
        connected = {i for i, _ in joints}
        unconnected = {port for i, port in self.map.sources.items() if i not in connected}
        senders = tuple(port for port in self.map.ports if port not in unconnected)
        circuits = tuple(CrossConnect(self.map.switch, i, o) for i, o in joints)
        seen = yield SurveyRound(circuits, senders, self._expected(joints), self._done)
        here = {pair for pair in seen if pair[1] in self._probed}
        self._understand(joints, here)
        for sender, elsewhere in seen - here:
            self.map.strays[sender].add(elsewhere.element)
        return bool(here)

    def _expected(self, joints: Sequence[Joint]) -> frozenset[Pair]:
        """Return the probes that must arrive if all fibers are wired as configured.

        Empty if the configuration does not determine them.
        """
        feeding = {o: self.map.sources[i] for i, o in joints if i in self.map.sources}
        pairs = set()
        for i, o in joints:
            receiver = self.map.sinks.get(o) or self._port_at_output.get(o)
            if receiver is None:
                continue
            sender = (
                self.map.sources.get(i) or self._port_at_input.get(i) or feeding.get(self._feed_of_output.get(i, 0))
            )
            if sender is None:
                return frozenset()
            pairs.add((sender, receiver))
        return frozenset(pairs)

    def _understand(self, joints: Sequence[Joint], seen: Iterable[Pair]) -> None:
        """Derive the unknown ends from received probes; if both ends were known, a splitter is between them."""
        sources, sinks = dict(self.map.sources), dict(self.map.sinks)
        toward = {sources[i]: o for i, o in joints if i in sources}
        back = {sinks[o]: i for i, o in joints if o in sinks}
        for sender, receiver in sorted(seen, key=lambda pair: (pair[0].element, pair[1].element)):
            lit, arrived = toward.get(sender), back.get(receiver)
            if lit is not None and sinks.get(lit) == receiver:
                continue
            if lit is not None and arrived is not None:
                self.map.glass.add((lit, arrived))
            elif arrived is not None:
                self.map.sources[arrived] = sender
            elif lit is not None:
                self.map.sinks[lit] = receiver
            elif len(joints) == 1:
                ((self_in, self_out),) = joints
                self.map.sources[self_in], self.map.sinks[self_out] = sender, receiver

    # -------------------------------------------------------------------------------------- what is needed

    @property
    def _known_inputs(self) -> list[int]:
        return [i for i in self.map.sources if self._still_held(i, self._port_at_input)]

    @property
    def _known_outputs(self) -> list[int]:
        return [o for o in self.map.sinks if self._still_held(o, self._port_at_output)]

    def _still_held(self, end: int, ports: dict[int, OpticalPort]) -> bool:
        return end in ports and ports[end].element not in self._done

    def _keep_references(self) -> None:
        """Free verified ports, except as many as the remaining circuits can use at once."""
        dark = 2 * len(self.map.ports) - len(self.map.sources) - len(self.map.sinks)
        needed = sum(splitter.fan_out for splitter in self.map.splitters) + (dark if self.map.splitters else 0)
        right = [port for port in self.map.ports if self.map.right(port)]
        self._finish(port.element for port in right[needed:])

    def _finish(self, elements: Iterable[ElementId]) -> None:
        self._done |= frozenset(elements)

    def _chunk(self, outputs: Sequence[tuple[Splitter, int]]) -> list[tuple[Splitter, int]]:
        """Return the first splitter outputs, as many as there are switch outputs and feeding inputs for them."""
        chunk: list[tuple[Splitter, int]] = []
        fed: set[str] = set()
        max_fed = len(self._known_inputs)
        for splitter, output in outputs[: len(self._known_outputs)]:
            fed.add(splitter.name)
            if len(fed) > max_fed:
                break
            chunk.append((splitter, output))
        return chunk


def _parts(items: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    return (items[start : start + size] for start in range(0, len(items), size))
