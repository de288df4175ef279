"""The core's world with light in it: fibres that break, switches that measure power, ToRs that see their links.

What the devices know of light is worked out fibre by fibre from the circuits that the switches hold and from what is
plugged in where (`fibre_wiring.py`); the core has no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from blast_controller.core.model.commands import CircuitChange, ForwardingChange
from blast_controller.core.model.events import DeviceEvent, LightAlarm, PortChanged, StepDark
from blast_controller.core.model.fabric import Fabric, StaticTree
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.settings import CoreSettings
from tests.support.fibre_wiring import Wiring
from tests.support.fibre_world import FibreWorld

Place = tuple[int, int]
"""A ToR's port: datapath and OpenFlow port."""


class LightWorld(FibreWorld):
    """`measures`: its switches tell where no light comes out. `sees_links`: a ToR's port has its link only while light
    arrives at it; else it always has. `unplugged` are ports that have no link whatever comes; `told` is what each ToR
    has told of its ports in this session. `dark_answers` are the outputs that an answer to a (reservation, step) has
    called dark.
    """

    def __init__(self, fabric: Fabric, settings: CoreSettings, measures: bool, sees_links: bool) -> None:
        super().__init__(fabric, settings)
        self.measures = measures
        self.sees_links = sees_links
        self.unplugged: set[Place] = set()
        self.told: dict[Place, bool] = {}
        self.dark_answers: dict[tuple[int, int], frozenset[int]] = {}
        self.on_dark: Callable[[CircuitChange], None] = lambda change: None
        self.places = _places(fabric)

    # --------------------------------------------------------------------------------------------- fibres

    def break_fibre(self, wiring: Wiring, number: int) -> None:
        """What was plugged in at a switch's input is so no more; what goes dark by that is seen."""
        lit = self._lit_outputs(wiring.switch)
        wiring.at_input[number] = None
        self._notice(wiring.switch, lit)

    def mend(self, wiring: Wiring) -> None:
        """Every fibre of a switch is plugged in as the config says."""
        wiring.at_input = dict(Wiring(self.fabric, wiring.switch).at_input)
        self.look_at_links()

    def _notice(self, switch: str, lit_before: Collection[int]) -> None:
        if self.measures and self.switches[switch].up:
            for output in sorted(set(lit_before) - self._lit_outputs(switch)):
                self.post(LightAlarm(switch, output, "loss of light"))
        self.look_at_links()

    def _lit_outputs(self, switch: str) -> set[int]:
        """The outputs of a switch at which any transmitter's light comes out."""
        wiring, held = self.wirings[switch], self.switches[switch].circuits
        feeds = {output: number for number, output in held.items()}
        return {output for output in feeds if _shines(wiring, feeds, output)}

    # ---------------------------------------------------------------------------------------------- links

    def look_at_links(self) -> None:
        """Every ToR that is there tells which of its ports have got or lost their link."""
        lit = {(p.rack, p.port) for switch in self.switches for p in self._lit_ports(switch)}
        for place, rack in self.places.items():
            # Static trees are never dark: nobody switches them.
            up = (rack is None or not self.sees_links or (rack, place[1]) in lit) and place not in self.unplugged
            if self.tors[place[0]].up and self.told.get(place) != up:
                self.tell_link(place, up)

    def _lit_ports(self, switch: str) -> list:
        if not self.sees_links:
            return []
        ends = (self.wirings[switch].at_output.get(output) for output in self._lit_outputs(switch))
        return [end for end in ends if end is not None and not isinstance(end, str)]

    def tell_link(self, place: Place, up: bool) -> None:
        """A ToR tells that a port has, or has lost, its link."""
        self.told[place] = up
        self.post(PortChanged(*place, up, "" if up else "link down"))

    # -------------------------------------------------------------------------------------------- devices

    def work(self, name: Device, *args, **more) -> None:
        """Let a device do its next command; links follow the light."""
        super().work(name, *args, **more)
        if isinstance(name, str):
            self.look_at_links()

    def write_late(self, name: Device) -> bool:
        """What an ended session has left on the wire may move light, too."""
        obeyed = super().write_late(name)
        self.look_at_links()
        return obeyed

    def come_back(self, name: Device, forgets: Callable[[object], bool] = lambda item: False) -> None:
        """A ToR that is there anew tells of every port."""
        super().come_back(name, forgets)
        for place in [place for place in self.told if place[0] == name]:
            del self.told[place]
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
        return StepDark(name, change.reservation, change.step, dark)

    # -------------------------------------------------------------------------------------- static trees

    def _beyond(self, datapath: int, port: int) -> list[Place]:
        far = super()._beyond(datapath, port)
        for tree in self.fabric.static_trees.values():
            if tree.root_rack and (self.fabric.racks[tree.root_rack].datapath, tree.root_port) == (datapath, port):
                far += self.static_places(tree)
        return far

    def static_places(self, tree: StaticTree) -> list[Place]:
        """The ToR ports that a static tree ends at."""
        return [(self.fabric.racks[rack].datapath, port) for rack, port in tree.leaf_ports.items()]


def _shines(wiring: Wiring, feeds: dict[int, int], output: int) -> bool:
    """Whether light of a port, which always transmits, comes out at an output; splitters may be joined in a loop."""
    been: set[int] = set()
    while output in feeds and output not in been:
        been.add(output)
        end = wiring.at_input.get(feeds[output])
        if not isinstance(end, str):
            return end is not None
        output = next((number for number, fed in wiring.at_output.items() if fed == end), 0)
    return False


def _places(fabric: Fabric) -> dict[Place, str | None]:
    """Every optical port of a ToR, with its rack; those that a static tree ends at without."""
    places: dict[Place, str | None] = {
        (rack.datapath, port.port): rack.name for rack in fabric.racks.values() for port in rack.optical_ports
    }
    for tree in fabric.static_trees.values():
        places |= {(fabric.racks[rack].datapath, port): None for rack, port in tree.leaf_ports.items()}
    return places
