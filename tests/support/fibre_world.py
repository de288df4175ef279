"""The fake world with fibres in it: probes travel through the circuits that its switches hold, as they are wired."""

from __future__ import annotations

from collections.abc import Collection

from blast_controller.core.fibre_check import FibreReport
from blast_controller.core.inventory.custody import PROBER
from blast_controller.core.model.commands import SendProbe
from blast_controller.core.model.events import ProbeSeen, Tick, VerifyAsked
from blast_controller.core.model.fabric import Fabric, OpticalPort
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import World
from tests.support.fibre_wiring import Wiring

NONCE = b"nobody can guess this, 32 bytes."
LONG = 10_000.0


class FibreWorld(World):
    """`losing` is how many of the next probes are lost; while `on_their_way` is a list, they arrive later."""

    def __init__(self, fabric: Fabric, settings: CoreSettings | None = None) -> None:
        super().__init__(fabric, settings)
        self.wirings = {switch: Wiring(fabric, switch) for switch in fabric.switches}
        self.probes: list[SendProbe] = []
        self.losing = 0
        self.on_their_way: list[ProbeSeen] | None = None
        self._port_at = {
            (fabric.racks[port.rack].datapath, port.port): port
            for switch in fabric.switches
            for port in fabric.whole_ports_on(switch)
        }

    @property
    def wiring(self) -> Wiring:
        """That of the first switch."""
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
                    self._arrive(ProbeSeen(datapath, receiver.port, probe.payload))

    def _arrive(self, seen: ProbeSeen) -> None:
        if self.on_their_way is not None:
            self.on_their_way.append(seen)
        else:
            self.post(seen)

    def let_arrive(self) -> None:
        """What is on its way arrives, and from now on everything does at once."""
        late, self.on_their_way = self.on_their_way or [], None
        for seen in late:
            self.post(seen)

    def arrives(self, sender: OpticalPort) -> set[OpticalPort]:
        """Where light from a port comes out now."""
        circuits = tuple(self.switches[sender.switch].held)
        return {receiver for _, receiver in self.wirings[sender.switch].seen(circuits, (sender,))}

    def tick(self) -> None:
        """Let time pass until the core wants to look."""
        wanted = self.core.next_timer()
        assert wanted is not None, "the core waits for nothing"
        self.now = max(self.now, wanted)
        self.handle(Tick())

    def ask(self, patience: float = 0.0, nonce: bytes = NONCE) -> str:
        """Ask for a check; returns the topic of its report."""
        self.handle(VerifyAsked(nonce, patience))
        return self.core.fibre_topic

    def report(self, topic: str) -> FibreReport:
        """Let everyone work, and time pass, until the report is there."""
        started = self.now
        self.settle()
        while topic not in self.announced:
            assert self.now < started + LONG, "there is no end to it"
            self.tick()
            self.settle()
        found = self.announced[topic]
        assert isinstance(found, FibreReport)
        return found

    def verified(self) -> FibreReport:
        """The report of a check from beginning to end."""
        return self.report(self.ask())

    def steps_until(self, probes: int) -> None:
        """Let everyone work until so many probes more have been sent."""
        wanted = len(self.probes) + probes
        while len(self.probes) < wanted:
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
        """No circuit but these, nothing held, nothing in the journal."""
        assert {c for switch in self.switches.values() for c in switch.held} == set(but)
        assert PROBER not in self.core.view.holders.values()
        assert not [key for kind, key in self.store._state if kind == "probe"]


def ready_fibres(fabric: Fabric, settings: CoreSettings | None = None) -> FibreWorld:
    """A world with every device connected and nothing on any."""
    world = FibreWorld(fabric, settings)
    world.connect_all()
    return world


def said(report: FibreReport) -> dict[str, str]:
    """The faults of a report by element."""
    return {fault.element: fault.sentence for fault in report.faults}
