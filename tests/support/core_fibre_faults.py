"""What happens to light in the core's world, at random: fibres, links, alarms, and checks of the fibre map."""

from __future__ import annotations

from blast_controller.core.fibre_check import FibreReport
from blast_controller.core.model.commands import CircuitChange
from blast_controller.core.model.events import LightAlarm, Tick, VerifyAsked
from blast_controller.core.rollout.reservation import Reservation
from tests.support.core_faults import DeviceFaults
from tests.support.core_light import Place
from tests.support.dice import Dice
from tests.support.fibre_wiring import Wiring
from tests.support.fibre_world import NONCE

MOST_ROUNDS = 200


class FibreFaults(DeviceFaults):
    """The actions of fibres and links."""

    def dark_leaf(self, change: CircuitChange) -> None:
        """A switch tells that it has seen no light."""
        self.note("dark leaf", [r for r in self.reservations() if r.id == change.reservation])

    def break_fibre(self, dice: Dice) -> None:
        """A transmit fibre or a splitter's leg goes dead, mostly one that is in use; or all are mended."""
        wiring = self.world.wirings[dice.pick(sorted(self.world.wirings))]
        if dice.rarely():
            self.world.mend(wiring)
            return
        used = [number for number in self.world.switches[wiring.switch].circuits if wiring.at_input.get(number)]
        plugged = [number for number, end in wiring.at_input.items() if end is not None]
        if not plugged:
            return
        legs = [leg for r in self.reservations() for x in r.layouts if x.tree for leg in x.tree.open_legs]
        spare = sorted({leg for leg in legs if wiring.at_input.get(leg)})
        number = dice.pick(sorted(plugged if dice.rarely() else used or plugged))
        if spare and dice.rarely():
            # The next that is led there stays dark.
            number = dice.pick(spare)
        self.note("fibre broken", self.fed_by(wiring, number))
        self.world.break_fibre(wiring, number)
        self.go_on(dice)

    def fed_by(self, wiring: Wiring, number: int) -> list[Reservation]:
        """The reservations that have a circuit from this input."""
        mine = (wiring.switch, number)
        return [
            r for r in self.reservations() if any((c.switch, c.input) == mine for x in r.layouts for c in x.circuits)
        ]

    def links(self, dice: Dice) -> None:
        """A ToR's port loses its link, for good or for a moment, or has it back."""
        how = dice.pick(["link lost", "link lost", "link flaps", "link back", "link back"])
        if how == "link back":
            for place in dice.some(sorted(self.world.unplugged), 3):
                self.note(how, self.ending_at(place))
                self.world.unplugged.discard(place)
            self.world.look_at_links()
            return
        place = self.some_place(dice)
        self.note(how, self.ending_at(place))
        if how == "link lost":
            self.world.unplugged.add(place)
        elif self.world.tors[place[0]].up and self.world.told.get(place):
            self.world.tell_link(place, up=False)
        self.world.look_at_links()
        self.go_on(dice)

    def alarm(self, dice: Dice) -> None:
        """A switch reports an output without light, rightly or not."""
        if not self.world.measures:
            return
        ports = [port for rack in self.world.fabric.racks.values() for port in rack.optical_ports]
        leaves = [leaf.port for r in self.reservations() for x in r.layouts if x.tree for leaf in x.tree.leaves]
        port = dice.pick(leaves if leaves and not dice.rarely() else ports)
        if port.switch and self.world.switches[port.switch].up:
            where = (self.world.fabric.racks[port.rack].datapath, port.port)
            self.note("light alarm", self.ending_at(where))
            self.world.post(LightAlarm(port.switch, port.output, "loss of light"))
        self.go_on(dice)

    def some_place(self, dice: Dice) -> Place:
        """Mostly a port that a light tree ends at."""
        racks = self.world.fabric.racks
        leaves = [leaf.port for r in self.reservations() for x in r.layouts if x.tree for leaf in x.tree.leaves]
        used = sorted({(racks[port.rack].datapath, port.port) for port in leaves})
        return dice.pick(used if used and not dice.rarely() else sorted(self.world.places))

    def ending_at(self, place: Place) -> list[Reservation]:
        """The reservations that have a leaf at this port."""
        racks = self.world.fabric.racks
        leaves = ((r, leaf.port) for r in self.reservations() for x in r.layouts if x.tree for leaf in x.tree.leaves)
        return list({r.id: r for r, port in leaves if (racks[port.rack].datapath, port.port) == place}.values())

    # ----------------------------------------------------------------------------------- checks of the map

    def verify(self, dice: Dice) -> None:
        """An operator asks for a check of the fibres, and waits for its report or does not."""
        self.note("fibre check", self.reservations(), self.part_states())
        self.world.losing = dice.pick([0, 0, 1, 5])
        patience = dice.pick([0.0, 3.0])
        self.world.inbox.append(lambda: self.world.handle(VerifyAsked(NONCE, patience)))
        if dice.number(0, 2) == 0:
            self.go_on(dice)
            return
        for _ in range(dice.number(1, 12)):
            self.world.settle()
            self.pass_time(0.25)

    def pass_time(self, seconds: float) -> None:
        """Time goes on, and the core looks what is due."""
        if self.world.running:
            self.world.now += seconds
            self.world.handle(Tick())
            self.ticked_at = self.world.now if self.world.running else self.ticked_at
        if self.world.running:
            self.note_ended()

    def checked_fibres(self) -> None:
        """With everything mended and nobody else about, a check of the fibres finds no fault, and leaves nothing."""
        self.mend_everything()
        self.finish_check()
        self.world.handle(VerifyAsked(NONCE))
        topic = self.core.fibre_topic
        self.finish_check()
        report = self.world.announced[topic]
        assert isinstance(report, FibreReport)
        assert report.faults == (), report
        assert not self.journal.rows("probe")

    def mend_everything(self) -> None:
        """All fibres are as configured, and all ports have what arrives."""
        self.world.losing = 0
        self.world.unplugged.clear()
        for wiring in self.world.wirings.values():
            self.world.mend(wiring)

    def finish_check(self) -> None:
        """Let a check of the fibres that runs come to its end."""
        for _ in range(MOST_ROUNDS):
            self.world.settle()
            if not self.core.view.is_checking_fibres and not self.journal.rows("probe"):
                return
            self.pass_time(0.5)
        raise AssertionError("a check of the fibres does not end")
