"""Random faults of devices, fibers, links and power in the core's world; see `core_machine.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from blast_controller.core.fiber_check import CheckStage, FiberReport
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.journal.bodies import request_key
from blast_controller.core.model.commands import CircuitChange, ReadDevice
from blast_controller.core.model.events import LightAlarmRaised, TimePassed, VerifyRequested
from blast_controller.core.model.fabric import CrossConnect, OpticalPort
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.part_states import PartState
from blast_controller.core.rollout.reservation import ChangePhase, Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.controller.core_invariants import Invariants
from tests.support.controller.core_light import NONCE, Place, Wiring
from tests.support.controller.fake_devices import FakeSwitch
from tests.support.dice import Dice

MAX_ROUNDS = 200


class Faults(Invariants):
    """The actions of devices and fibers, and the controller's deaths; `counts`: how often each fault met each phase."""

    counts: Counter[tuple[str, str]]

    def note(self, fault: str, reservations: Iterable[Reservation] = (), parts: Iterable[PartState] = ()) -> None:
        """Count a fault for the phase of each reservation and part that it meets."""
        for reservation in reservations:
            self.counts["reservation " + phase_of(reservation), fault] += 1
        for state in parts:
            self.counts["part " + ("ended" if state.final else state.value), fault] += 1

    def note_device(self, fault: str, name: Device) -> None:
        """Count a fault of a device for every reservation, and the check of fibers, that has a share in it."""
        self.note(fault, self.on(name))
        bench = self.bench()
        if bench is not None and (name == bench.switch or not isinstance(name, str)):
            self.counts["check " + bench.phase, fault] += 1

    def note_command(self, fault: str, command: object) -> None:
        """Count a fault of a command for every reservation, and the check of fibers, that it names."""
        self.note(fault, self.of(command))
        bench = self.bench()
        if bench is not None and any(change.reservation == PROBER for change in getattr(command, "changes", ())):
            self.counts["check " + bench.phase, fault] += 1

    def bench(self) -> CheckStage | None:
        """Return the switch whose fibers are being checked, with the phase of the check."""
        return self.core.view.fiber_check if self.world.running else None

    def on(self, name: Device) -> list[Reservation]:
        """Return the reservations with a share on a device."""
        return [r for r in self.reservations() if any(name in x.device_state.devices for x in r.layouts)]

    def of(self, command: object) -> list[Reservation]:
        """Return the reservations in a command."""
        numbers = {change.reservation for change in getattr(command, "changes", ())}
        return [r for r in self.reservations() if r.id in numbers]

    def part_states(self) -> list[PartState]:
        return [part.state for request in self.core.requests.values() for part in request.parts]

    # -------------------------------------------------------------------------------------------- devices

    def deliver(self, dice: Dice) -> None:
        count = dice.number(1, 4)
        if dice.number(0, 2):
            self.world.deliver(count)
        else:
            self.note("several events at once", self.reservations())
            self.world.deliver_together(count)

    def work(self, dice: Dice) -> None:
        for _ in range(dice.number(1, 8)):
            busy = [name for name in self.world.devices if self.world.device(name).queue]
            if busy and dice.number(0, 1):
                self.work_once(dice.pick(busy), dice)
            elif self.world.late and dice.number(0, 1):
                self.world.post(self.world.late.popleft())
            else:
                self.world.deliver(1)

    def go_on(self, dice: Dice) -> None:
        """Let all parts do their pending work, some of it with faults, or none."""
        how = dice.pick(["well", "with trouble", "with trouble", "not yet"])
        if how == "well":
            self.world.settle()
        elif how == "with trouble":
            self.work(dice)

    def work_once(self, name: Device, dice: Dice) -> None:
        command = self.world.device(name).queue[0]
        trouble = dice.pick(["none", "none", "none", "denied", "partial", "cut", "lost", "late", "twice"])
        if isinstance(command, ReadDevice) or trouble == "none":
            self.world.work(name)
            return
        self.note_command(f"command {trouble}", command)
        positions = range(len(command.changes))
        if trouble == "denied":
            self.world.work(name, positions)
        elif trouble == "partial":
            self.world.work(name, dice.some(positions, len(positions)) or [0])
        elif trouble == "cut":
            self.world.work(name, cut_after=dice.number(0, 3))
        else:
            self.world.work(name, reply=trouble)

    def late_answers(self, dice: Dice) -> None:
        """Deliver answers to the core late, or a second time."""
        for _ in range(min(dice.number(1, 3), len(self.world.late))):
            self.world.post(self.world.late.popleft())

    def late_writes(self, dice: Dice) -> None:
        """Apply commands to a device that an ended session, maybe of an older epoch, had sent."""
        names = [name for name in self.world.devices if self.world.device(name).in_flight]
        passing = [n for n in names if any(map(is_passing, self.of(self.world.device(n).in_flight[0][1])))]
        if not passing and dice.number(0, 2):
            return
        name = dice.pick(passing or names)
        epoch, command = self.world.device(name).in_flight[0]
        self.note_command("late write" if epoch == self.world.epoch else "write of an older epoch", command)
        self.world.write_late(name)

    def lose(self, dice: Dice) -> None:
        up = self.devices(up=True)
        if dice.number(0, 1):
            at_work = [name for name in up if self.world.device(name).queue]
            concerned = [name for name in at_work if self.in_transition_on(name)]
            name = dice.pick(up if dice.rarely() else concerned or at_work or up)
            self.note_device("session lost", name)
            self.world.lose(name)

    def come_back(self, dice: Dice) -> None:
        self.bring_back(dice.pick(self.devices(up=False)), dice)

    def reboot(self, dice: Dice) -> None:
        """Reboot a device that reconnects before the core notices."""
        up = self.devices(up=True)
        if up:
            concerned = [name for name in up if self.in_transition_on(name)]
            name = dice.pick(concerned or up)
            self.note_device("session lost", name)
            self.world.lose(name)
            self.bring_back(name, dice)

    def devices(self, up: bool) -> list[Device]:
        """Return the connected or the disconnected devices."""
        return [name for name in self.world.devices if self.world.device(name).up == up]

    def in_transition_on(self, name: Device) -> bool:
        """Return True if anything on a device is in a transient phase."""
        bench = self.bench()
        return any(map(is_passing, self.on(name))) or (bench is not None and bench.switch == name)

    def bring_back(self, name: Device, dice: Dice) -> None:
        """Connect a device with all, some or none of its previous state."""
        memory = dice.pick(["everything", "everything", "nothing", "a part", "its past"])
        if memory != "everything":
            self.note_device(f"back with {memory}", name)
        salt = dice.number(0, 9)
        forgets: dict[str, Callable[[object], bool]] = {
            "nothing": lambda _: True,
            "a part": lambda x: sum(str(x).encode()) % 10 > salt,
        }

        def change() -> None:
            if memory == "its past":
                self.go_back_in_time(name)
            self.world.come_back(name, forgets.get(memory, lambda _: False))

        self.silent.discard(name)
        self.unprocessed[name] += 1
        self.disturb(name, change)

    def connect_all(self, dice: Dice) -> None:
        """End all network faults."""
        self.reconnect()
        self.go_on(dice)

    def reconnect(self) -> None:
        for name in self.devices(up=False):
            self.silent.discard(name)
            self.unprocessed[name] += 1
            self.disturb(name, lambda name=name: self.world.come_back(name))

    def disturb(self, name: Device, change: Callable[[], None]) -> None:
        """Let a device change by itself, and remember whom that harms."""
        before = {r.id: self.share(r, name) for r in self.on(name)}
        change()
        for reservation in self.on(name):
            share = self.share(reservation, name)
            if share != before[reservation.id]:
                self.disturbed.add((reservation.id, name))
            if before[reservation.id] - share:
                self.harmed.setdefault(reservation.id, set()).add(name)

    def share(self, reservation: Reservation, name: Device) -> set[object]:
        """Return the share of a reservation that a device holds."""
        device = self.world.device(name)
        if isinstance(device, FakeSwitch):
            return {c for x in reservation.layouts for c in x.circuits} & (device.held - device.foreign)
        return {item for item in device.held if item[0] == reservation.id}

    def save(self) -> None:
        """Save the rules of the ToRs, which a reboot restores."""
        self.saved = {name: dict(tor.rules) for name, tor in self.world.tors.items()}

    def go_back_in_time(self, name: Device) -> None:
        """Reconnect a ToR with its saved rules, or a switch with any state."""
        if isinstance(name, str) or name not in self.saved:
            return
        tor = self.world.tors[name]
        now = tor.held
        tor.rules = dict(self.saved[name])
        live = {r.id: r for r in self.reservations()}
        surplus = frozenset(item for item in tor.held - now)
        self.stale[name] = self.stale.get(name, frozenset()) | surplus
        for number, _ in surplus:
            if number in live:
                self.harmed.setdefault(number, set()).add(name)
                self.disturbed.add((number, name))

    def tamper(self, dice: Dice) -> None:
        """Change a device by hand, without the controller."""
        concerned = [name for name in self.world.devices if self.in_transition_on(name)]
        name = dice.pick(self.world.devices if dice.rarely() else concerned or self.world.devices)
        device = self.world.device(name)
        deeds: dict[str, Callable[[], None]]
        if isinstance(device, FakeSwitch):
            deeds = {
                "foreign on free ports": lambda: self.connect_by_hand(device, dice, ours=False),
                "foreign on ours": lambda: self.connect_by_hand(device, dice, ours=True),
                "ours deleted": lambda: self.delete_by_hand(device, dice),
                "foreign gone": lambda: self.clear_foreign(device),
            }
        else:
            deeds = {
                "foreign rules": lambda: setattr(device, "foreign_rules", dice.number(0, 3)),
                "rule deleted": lambda: self.delete_rule(device, dice),
            }
        how = dice.pick(list(deeds))
        self.note_device(how, name)
        self.silent.add(name)
        self.disturb(name, deeds[how])
        self.world.look_at_links()

    def connect_by_hand(self, switch: FakeSwitch, dice: Dice, ours: bool) -> None:
        fabric = self.world.fabric
        holders = {element for reservation in self.reservations() for element in reservation.elements}
        holders |= self.core.view.holders.keys()
        ports = [p for p in fabric.ports_on(switch.name) if (p.element in holders) == ours]
        splitters = [s for s in fabric.splitters.values() if s.switch == switch.name and (s.element in holders) == ours]
        inputs = [p.input for p in ports] + [output for s in splitters for output in s.outputs]
        outputs = [p.output for p in ports] + [s.input for s in splitters]
        if not inputs or not outputs:
            return
        circuit = CrossConnect(switch.name, dice.pick(inputs), dice.pick(outputs))
        mine = {c for r in self.reservations() for x in r.layouts for c in x.circuits}
        if circuit in mine | self.journal.unreserved_circuits():
            return
        rivals = {c for c in switch.held if c.input == circuit.input or c.output == circuit.output}
        if rivals & switch.foreign:
            return
        for rival in rivals:
            switch.disconnect(rival)
        switch.circuits[circuit.input] = circuit.output
        switch.foreign.add(circuit)

    @staticmethod
    def delete_by_hand(switch: FakeSwitch, dice: Dice) -> None:
        for circuit in dice.some(sorted(switch.held - switch.foreign), 2):
            switch.disconnect(circuit)

    @staticmethod
    def clear_foreign(switch: FakeSwitch) -> None:
        for circuit in switch.foreign:
            switch.disconnect(circuit)
        switch.foreign.clear()

    @staticmethod
    def delete_rule(tor, dice: Dice) -> None:
        for key in dice.some(sorted(tor.rules), 2):
            del tor.rules[key]

    # -------------------------------------------------------------------------------------------- crashes

    def arm(self, dice: Dice) -> None:
        """Let the controller die before one of its next deeds: a commit, a command, a message."""
        self.world.crash_after = dice.number(0, 15)

    def crash(self, dice: Dice) -> None:
        if dice.rarely():
            self.world.crash()

    def crashed(self) -> None:
        self.note("crash", self.journal.reservations(), self.part_states())
        bench = self.core.view.fiber_check
        if bench is not None:
            self.counts["check " + bench.phase, "crash"] += 1
        remember = self.core.settings.remember_ended
        known = self.journal.rows("request")
        for key in [key for key, over in self.ended_at.items() if self.world.now >= over + remember]:
            if request_key(key) not in known:
                self.accepted.discard(key)
                self.published.pop(key, None)
        self.unprocessed.clear()
        self.silent.clear()
        self.leases.clear()
        self.ended_at.clear()
        self.ticked_at = float("-inf")

    def start(self, dice: Dice) -> None:
        """Start a new process, with a later epoch and a steady clock from zero."""
        self.note("restart", self.journal.reservations())
        self.start_over(dice.pick([0.0, self.world.now, 1e6]))

    def start_over(self, now: float) -> None:
        self.world.start(now)
        for key, request in self.core.requests.items() if self.world.running else ():
            for part in request.parts:
                if part.state is PartState.ACTIVE and part.grant is not None:
                    self.leases[key] = self.world.now + part.grant.lease
            # Whatever the journal has was promised.
            self.accepted.add(key)

    # ------------------------------------------------------------------------------------- fibers and links

    def dark_leaf(self, change: CircuitChange) -> None:
        """Let a switch report a dark output."""
        self.note("dark leaf", [r for r in self.reservations() if r.id == change.reservation])

    def break_fiber(self, dice: Dice) -> None:
        """Break a transmit fiber or a splitter's output, usually one in use; or mend all."""
        wiring = self.world.wirings[dice.pick(sorted(self.world.wirings))]
        if dice.rarely():
            self.world.mend(wiring)
            return
        used = [number for number in self.world.switches[wiring.switch].circuits if wiring.at_input.get(number)]
        plugged = [number for number, end in wiring.at_input.items() if end is not None]
        if not plugged:
            return
        outputs = [output for r in self.reservations() for x in r.layouts if x.tree for output in x.tree.free_outputs]
        spare = sorted({output for output in outputs if wiring.at_input.get(output)})
        number = dice.pick(sorted(plugged if dice.rarely() else used or plugged))
        if spare and dice.rarely():
            # The next that is led there stays dark.
            number = dice.pick(spare)
        self.note("fiber broken", self.fed_by(wiring, number))
        self.world.break_fiber(wiring, number)
        self.go_on(dice)

    def fed_by(self, wiring: Wiring, number: int) -> list[Reservation]:
        """Return the reservations that have a circuit from this input."""
        mine = (wiring.switch, number)
        return [
            r for r in self.reservations() if any((c.switch, c.input) == mine for x in r.layouts for c in x.circuits)
        ]

    def links(self, dice: Dice) -> None:
        """Take a ToR port's link down, for long or for a moment, or bring it up."""
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
        elif self.world.tors[place[0]].up and self.world.reported.get(place):
            self.world.report_link(place, up=False)
        self.world.look_at_links()
        self.go_on(dice)

    def alarm(self, dice: Dice) -> None:
        """Let a switch raise an alarm for a dark output, true or false."""
        if not self.world.measures:
            return
        ports = [port for rack in self.world.fabric.racks.values() for port in rack.optical_ports]
        leaves = [port for _, port in self.leaves()]
        port = dice.pick(leaves if leaves and not dice.rarely() else ports)
        if port.switch and self.world.switches[port.switch].up:
            self.note("light alarm", self.ending_at(self.place_of(port)))
            self.world.post(LightAlarmRaised(port.switch, port.output, "loss of light"))
        self.go_on(dice)

    def some_place(self, dice: Dice) -> Place:
        """Return a port, usually one at which a light tree ends."""
        used = sorted({self.place_of(port) for _, port in self.leaves()})
        return dice.pick(used if used and not dice.rarely() else sorted(self.world.places))

    def ending_at(self, place: Place) -> list[Reservation]:
        """Return the reservations that have a leaf at this port."""
        return list({r.id: r for r, port in self.leaves() if self.place_of(port) == place}.values())

    def leaves(self) -> list[tuple[Reservation, OpticalPort]]:
        """Return the leaves of all light trees, with their reservations."""
        return [(r, leaf.port) for r in self.reservations() for x in r.layouts if x.tree for leaf in x.tree.leaves]

    def place_of(self, port: OpticalPort) -> Place:
        return self.world.fabric.racks[port.rack].datapath, port.port

    # ----------------------------------------------------------------------------------- checks of the map

    def verify(self, dice: Dice) -> None:
        """Request a check of the fibers, and maybe wait for its report."""
        self.note("fiber check", self.reservations(), self.part_states())
        self.world.losing = dice.pick([0, 0, 1, 5])
        timeout = dice.pick([0.0, 3.0])
        self.world.inbox.append(lambda: self.world.handle(VerifyRequested(NONCE, timeout)))
        if dice.number(0, 2) == 0:
            self.go_on(dice)
            return
        for _ in range(dice.number(1, 12)):
            self.world.settle()
            self.pass_time(0.25)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and let the core handle due events."""
        if self.world.running:
            self.world.now += seconds
            self.world.handle(TimePassed())
            self.ticked_at = self.world.now if self.world.running else self.ticked_at
        if self.world.running:
            self.note_ended()

    def checked_fibers(self) -> None:
        """Check that in a quiet, repaired world, a fiber check finds no fault and leaves nothing behind."""
        self.mend_everything()
        self.finish_check()
        self.world.handle(VerifyRequested(NONCE))
        topic = self.core.fiber_topic
        self.finish_check()
        report = self.world.announced[topic]
        assert isinstance(report, FiberReport)
        assert report.faults == (), report
        assert not self.journal.rows("probe")

    def mend_everything(self) -> None:
        """Restore all fibers and links."""
        self.world.losing = 0
        self.world.unplugged.clear()
        for wiring in self.world.wirings.values():
            self.world.mend(wiring)

    def finish_check(self) -> None:
        """Let a check of the fibers that runs come to its end."""
        for _ in range(MAX_ROUNDS):
            self.world.settle()
            if not self.core.view.is_checking_fibers and not self.journal.rows("probe"):
                return
            self.pass_time(0.5)
        raise AssertionError("a check of the fibers does not end")


def is_passing(reservation: Reservation) -> bool:
    """Return True if the reservation is in a transient phase."""
    return reservation.state in (ReservationState.CONFIGURING, ReservationState.CHANGING)


def phase_of(reservation: Reservation) -> str:
    """Return its state, or the phase of its change, which includes the move of a dark leaf to another output."""
    change = reservation.change
    if change is None:
        return reservation.state.value
    is_repair = (
        change.target.receivers == reservation.layout.receivers and change.target.tree != reservation.layout.tree
    )
    return "repairing" if is_repair and change.phase is ChangePhase.ADDING else change.phase.value
