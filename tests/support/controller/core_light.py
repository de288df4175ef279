"""The core's world with fibers and light: the real wiring, probes, measured power, links.

The world traces light fiber by fiber from the circuits of the switches. It uses no code of the core, and does not know
how a survey of the fibers works or what it concludes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from blast_controller.core.fiber_check import FiberReport
from blast_controller.core.fibers.fiber_judge import FiberFault, judge
from blast_controller.core.fibers.fiber_survey import Pair, SurveyRound, survey
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.commands import CircuitChange, ForwardingChange, SendProbe, SetCircuits, SetForwarding
from blast_controller.core.model.events import (
    DeviceEvent,
    LightAlarmRaised,
    LightNotDetected,
    PortChanged,
    ProbeReceived,
    TimePassed,
    VerifyRequested,
)
from blast_controller.core.model.fabric import CrossConnect, Fabric, OpticalPort, StaticTree
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import World, make_fabric

End = OpticalPort | str | None
"""A port, a splitter by its name, or nothing."""


class Wiring:
    """The wiring of each input and output of one of the fabric's switches."""

    def __init__(self, fabric: Fabric, switch: str = "ocs1") -> None:
        self.switch = switch
        self.ports = fabric.whole_ports_on(switch)
        self.splitters = [splitter for splitter in fabric.splitters.values() if splitter.switch == switch]
        self.at_input: dict[int, End] = {port.input: port for port in self.ports}
        self.at_input |= {output: s.name for s in self.splitters for output in s.outputs}
        self.at_output: dict[int, End] = {port.output: port for port in self.ports}
        self.at_output |= {s.input: s.name for s in self.splitters}

    def swap_inputs(self, one: int, other: int) -> None:
        self.at_input[one], self.at_input[other] = self.at_input[other], self.at_input[one]

    def swap_outputs(self, one: int, other: int) -> None:
        self.at_output[one], self.at_output[other] = self.at_output[other], self.at_output[one]

    def seen(self, circuits: tuple[CrossConnect, ...], senders: tuple[OpticalPort, ...]) -> set[Pair]:
        """Return the pairs of sender and receiver whose probes arrive with these circuits."""
        joined = {c.input: c.output for c in circuits}
        inputs: defaultdict[End, list[int]] = defaultdict(list)
        for number, end in self.at_input.items():
            inputs[end].append(number)
        ends = ((sender, self.at_output.get(o)) for sender in senders for o in self.lit(inputs[sender], joined))
        return {(sender, end) for sender, end in ends if isinstance(end, OpticalPort)}

    def lit(self, inputs: list[int], joined: dict[int, int]) -> set[int]:
        """Return the outputs that light from these inputs reaches; splitters may be joined in a loop."""
        lit: set[int] = set()
        waiting = list(inputs)
        while waiting:
            output = joined.get(waiting.pop())
            if output is not None and output not in lit:
                lit.add(output)
                end = self.at_output.get(output)
                waiting += [number for number, one in self.at_input.items() if isinstance(end, str) and one == end]
        return lit


class Played:
    """A survey on a wiring: its rounds, its result, the number of rounds that waited the whole time, and the faults."""

    def __init__(self, wiring: Wiring, ports=None, splitters=None) -> None:
        self.rounds: list[SurveyRound] = []
        self.waits = 0
        ports = wiring.ports if ports is None else ports
        splitters = wiring.splitters if splitters is None else splitters
        going = survey(wiring.switch, ports, splitters)
        try:
            round_ = next(going)
            while True:
                self._check(round_)
                seen: set[Pair] = set()
                # Probes run one after the other, and a complete round accepts no more.
                coming = sorted(wiring.seen(round_.circuits, round_.senders), key=str)
                while coming and not round_.complete(seen):
                    seen.add(coming.pop())
                self.waits += not round_.complete(seen)
                round_ = going.send(frozenset(seen))
        except StopIteration as end:
            self.map = end.value
        self.faults: list[FiberFault] = judge(self.map)
        self.sentences = {fault.element: fault.sentence for fault in self.faults}
        assert len(self.sentences) == len(self.faults), "an element is named twice"

    def _check(self, round_: SurveyRound) -> None:
        """Check that a round connects each input to one output only, and record the round."""
        assert round_.circuits
        assert round_.senders
        assert (
            len({c.input for c in round_.circuits}) == len({c.output for c in round_.circuits}) == len(round_.circuits)
        )
        self.rounds.append(round_)


NONCE = b"nobody can guess this, 32 bytes."
LONG = 10_000.0


class FiberWorld(World):
    """A world with fibers: the next `losing` probes are lost; while `on_their_way` is a list, they arrive later."""

    def __init__(self, fabric: Fabric, settings: CoreSettings | None = None) -> None:
        super().__init__(fabric, settings)
        self.wirings = {switch: Wiring(fabric, switch) for switch in fabric.switches}
        self.probes: list[SendProbe] = []
        self.losing = 0
        self.on_their_way: list[ProbeReceived] | None = None
        self._port_at = {
            (fabric.racks[port.rack].datapath, port.port): port
            for switch in fabric.switches
            for port in fabric.whole_ports_on(switch)
        }

    @property
    def wiring(self) -> Wiring:
        """Return the wiring of the first switch."""
        return self.wirings[self.fabric.switches[0]]

    def _do_deed(self, deed) -> None:
        if isinstance(deed, SendProbe):
            self._probe(deed)
        super()._do_deed(deed)

    def _probe(self, probe: SendProbe) -> None:
        self.probes.append(probe)
        sender = self._port_at[probe.datapath, probe.port]
        if self.losing:
            self.losing -= 1
        elif self.tors[probe.datapath].up:
            for receiver in self.arrives(sender):
                datapath = self.fabric.racks[receiver.rack].datapath
                if self.tors[datapath].up:
                    self._arrive(ProbeReceived(datapath, receiver.port, probe.payload))

    def _arrive(self, seen: ProbeReceived) -> None:
        if self.on_their_way is not None:
            self.on_their_way.append(seen)
        else:
            self.post(seen)

    def let_arrive(self) -> None:
        """Deliver everything in transit; from now on, everything takes effect at once."""
        late, self.on_their_way = self.on_their_way or [], None
        for seen in late:
            self.post(seen)

    def arrives(self, sender: OpticalPort) -> set[OpticalPort]:
        """Return the current destinations of light from a port."""
        circuits = tuple(self.switches[sender.switch].held)
        return {receiver for _, receiver in self.wirings[sender.switch].seen(circuits, (sender,))}

    def tick(self) -> None:
        """Let time pass until the core wants to look."""
        due = self.core.next_timer()
        assert due is not None, "the core waits for nothing"
        self.now = max(self.now, due)
        self.handle(TimePassed())

    def ask(self, seconds: float = 0.0, nonce: bytes = NONCE) -> str:
        """Ask for a check; returns the topic of its report."""
        self.handle(VerifyRequested(nonce, seconds))
        return self.core.fiber_topic

    def report(self, topic: str) -> FiberReport:
        """Let everyone work, and time pass, until the report is there."""
        started = self.now
        self.settle()
        while topic not in self.announced:
            assert self.now < started + LONG, "there is no end to it"
            self.tick()
            self.settle()
        found = self.announced[topic]
        assert isinstance(found, FiberReport)
        return found

    def verified(self) -> FiberReport:
        """Run a complete check and return its report."""
        return self.report(self.ask())

    def steps_until(self, probes: int) -> None:
        """Run all parts until `probes` more probes have been sent."""
        total = len(self.probes) + probes
        while len(self.probes) < total:
            if self.inbox:
                self.deliver(1)
            elif not self.work_once():
                self.tick()

    def work_once(self) -> bool:
        """Let one device do one command."""
        for name in self.devices:
            if self.device(name).queue:
                self.work(name)
                return True
        return False

    def assert_nothing_left(self, but: Collection[object] = ()) -> None:
        """Check that no other circuits, reservations and journal rows are left."""
        assert {c for switch in self.switches.values() for c in switch.held} == set(but)
        assert PROBER not in self.core.view.holders.values()
        assert not [key for kind, key in self.store._state if kind == "probe"]


def ready_fibers(fabric: Fabric, settings: CoreSettings | None = None) -> FiberWorld:
    """Return a world with every device connected and empty."""
    world = FiberWorld(fabric, settings)
    world.connect_all()
    return world


def sentences(report: FiberReport) -> dict[str, str]:
    """Return the faults of a report by element."""
    return {fault.element: fault.sentence for fault in report.faults}


Place = tuple[int, int]
"""A ToR's port: datapath and OpenFlow port."""


class LightWorld(FiberWorld):
    """A world that models light on its fibers and circuits.

    With `measures`, its switches report dark outputs. With `sees_links`, a ToR's port has its link only while light
    arrives at it; otherwise it always has one. `unplugged` are ports that never have a link; `reported` has the port
    states that each ToR has reported in this session. `dark_answers` are the outputs that an answer to a (reservation,
    step) has called dark. `dead` are inputs and outputs of the first switch, as ("in" or "out", number), that are dark
    regardless of the wiring.
    """

    def __init__(self, fabric: Fabric, settings: CoreSettings, measures: bool, sees_links: bool) -> None:
        super().__init__(fabric, settings)
        self.measures = measures
        self.sees_links = sees_links
        self.dead: set[tuple[str, int]] = set()
        self.unplugged: set[Place] = set()
        self.reported: dict[Place, bool] = {}
        self.dark_answers: dict[tuple[int, int], frozenset[int]] = {}
        self.on_dark: Callable[[CircuitChange], None] = lambda change: None
        self.places = _places(fabric)

    # --------------------------------------------------------------------------------------------- fibers

    def break_fiber(self, wiring: Wiring, number: int) -> None:
        """Unplug the fiber at a switch's input; devices report what goes dark."""
        lit = self._lit_outputs(wiring.switch)
        wiring.at_input[number] = None
        self._notice(wiring.switch, lit)

    def mend(self, wiring: Wiring) -> None:
        """Plug in every fiber of a switch as configured."""
        wiring.at_input = dict(Wiring(self.fabric, wiring.switch).at_input)
        self.look_at_links()

    def _notice(self, switch: str, lit_before: Collection[int]) -> None:
        if self.measures and self.switches[switch].up:
            for output in sorted(set(lit_before) - self._lit_outputs(switch)):
                self.post(LightAlarmRaised(switch, output, "loss of light"))
        self.look_at_links()

    def _lit_outputs(self, switch: str) -> set[int]:
        """Return the outputs of a switch at which light of any transmitter leaves."""
        wiring, held = self.wirings[switch], self.switches[switch].circuits
        joined = {i: o for i, o in held.items() if not {("in", i), ("out", o)} & self.dead}
        return wiring.lit([number for number, end in wiring.at_input.items() if isinstance(end, OpticalPort)], joined)

    # ---------------------------------------------------------------------------------------------- links

    def look_at_links(self) -> None:
        """Let every connected ToR report the ports whose link has changed."""
        lit = {(p.rack, p.port) for switch in self.switches for p in self._lit_ports(switch)}
        for place, rack in self.places.items():
            # Static trees are never dark: no switch is on their path.
            up = (rack is None or not self.sees_links or (rack, place[1]) in lit) and place not in self.unplugged
            if self.tors[place[0]].up and self.reported.get(place) != up:
                self.report_link(place, up)

    def _lit_ports(self, switch: str) -> list:
        if not self.sees_links:
            return []
        ends = (self.wirings[switch].at_output.get(output) for output in self._lit_outputs(switch))
        return [end for end in ends if isinstance(end, OpticalPort)]

    def report_link(self, place: Place, up: bool) -> None:
        """Let a ToR report that the link of a port is up or down."""
        self.reported[place] = up
        self.post(PortChanged(*place, up, "" if up else "link down"))

    # -------------------------------------------------------------------------------------------- devices

    def work(self, name: Device, *args, **more) -> None:
        """Let a device execute its next command, and update the links."""
        super().work(name, *args, **more)
        if isinstance(name, str):
            self.look_at_links()

    def write_late(self, name: Device) -> bool:
        """Apply a command of an ended session, which may move light, too."""
        obeyed = super().write_late(name)
        self.look_at_links()
        return obeyed

    def come_back(self, name: Device, forgets: Callable[[object], bool] = lambda item: False) -> None:
        """Connect a ToR again, which reports the state of every port."""
        super().come_back(name, forgets)
        for place in [place for place in self.reported if place[0] == name]:
            del self.reported[place]
        self.look_at_links()

    def _verdict(self, name: Device, change: CircuitChange | ForwardingChange, refusal: str | None) -> DeviceEvent:
        verdict = super()._verdict(name, change, refusal)
        if refusal or not self.measures or not isinstance(change, CircuitChange):
            return verdict
        dark = frozenset(change.leaves) - self._lit_outputs(str(name))
        self.dark_answers[change.reservation, change.step] = dark
        if not dark:
            return verdict
        self.on_dark(change)
        return LightNotDetected(name, change.reservation, change.step, dark)

    # -------------------------------------------------------------------------------------- static trees

    def _beyond(self, datapath: int, port: int) -> list[Place]:
        far = super()._beyond(datapath, port)
        for tree in self.fabric.static_trees.values():
            if tree.root_rack and (self.fabric.racks[tree.root_rack].datapath, tree.root_port) == (datapath, port):
                far += self.static_places(tree)
        return far

    def static_places(self, tree: StaticTree) -> list[Place]:
        """Return the ToR ports at which a static tree ends."""
        return [(self.fabric.racks[rack].datapath, port) for rack, port in tree.leaf_ports.items()]


def _places(fabric: Fabric) -> dict[Place, str | None]:
    """Return every optical port of a ToR with its rack, without ports at which a static tree ends."""
    places: dict[Place, str | None] = {
        (rack.datapath, port.port): rack.name for rack in fabric.racks.values() for port in rack.optical_ports
    }
    for tree in fabric.static_trees.values():
        places |= {(fabric.racks[rack].datapath, port): None for rack, port in tree.leaf_ports.items()}
    return places


# ------------------------------------------------------------------------------- worlds with one measuring switch


GROUP = ["r2h1", "r3h1"]


def measuring(racks: int, splitters: Sequence[int], settings: CoreSettings | None = None, **more: int) -> LightWorld:
    """Return a world whose optical switch measures power, with every device connected."""
    world = LightWorld(
        make_fabric(racks, splitters, **more), settings or CoreSettings(), measures=True, sees_links=False
    )
    world.connect_all()
    world.commands.clear()
    return world


def quarantined(world: World) -> set[str]:
    """Return the elements in quarantine."""
    return set(world.core.view.quarantined)


def output(world: World, number: int, splitter: str = "s1") -> int:
    """Return the switch input that a splitter's output enters at."""
    return world.fabric.splitters[splitter].outputs[number]


def output_name(world: World, number: int, splitter: str = "s1") -> str:
    """Return the element of a splitter's output."""
    return f"output:{splitter}/{output(world, number, splitter)}"


def output_of(world: World, rack: str) -> int:
    """Return the switch output that reaches the first optical port of a rack."""
    return world.fabric.racks[rack].optical_ports[0].output


def commanded_circuits(world: World) -> tuple[set[CrossConnect], set[CrossConnect]]:
    """Return the commands of the switches: (disconnected, connected)."""
    changes = [change for c in world.commands if isinstance(c, SetCircuits) for change in c.changes]
    return {c for x in changes for c in x.disconnect}, {c for x in changes for c in x.connect}


def commanded_rules(world: World) -> list[SetForwarding]:
    """Return the commands of the ToRs."""
    return [c for c in world.commands if isinstance(c, SetForwarding)]
