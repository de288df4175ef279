"""What must hold whenever all is well again: the core's invariants, on what journal and devices have come to."""

from __future__ import annotations

from collections.abc import Sequence

from blast_controller.store.etcd.followed import FollowedJournal
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.holdings import Holdings
from blast_controller.store.rows import encode
from tests.support.core_checks import check_desired
from tests.support.core_invariants import Invariants
from tests.support.core_light import LightWorld
from tests.support.modelled_etcd import ModelledConnection
from tests.support.succession.clients import Histories
from tests.support.succession.controller import Controller
from tests.support.succession.history import verdict
from tests.support.succession.room import Room


class AtOnce:
    """A way to etcd on which nothing takes any time."""

    def now(self) -> float:
        return 0.0

    def pause(self, seconds: float) -> None:
        """Nobody waits."""

    def carry(self, act, seconds: float):
        return act()

    def wait_for_change(self, until: float) -> None:
        """Nobody waits."""


class AfterFaults(Invariants):
    """The room as a world of the core's machine: what devices hold, what the journal says, and the leader's core."""

    def __init__(self, room: Room, leader: Controller) -> None:
        super().__init__()
        assert leader.daemon is not None
        core = leader.daemon.runtime.core
        self.world = LightWorld(room.fabric, room.settings, measures=False, sees_links=False)
        self.world.core, self.world.now = core, room.scheduler.now
        self.contents = {key: request.content for key, request in core.requests.items()}
        journal = FollowedJournal(ModelledConnection(room.etcd, AtOnce()), Keys("/simulated/")).state()
        self.world.store.close()
        self.world.store._state = {(record.kind, record.key): encode(record.body) for record in journal.records()}
        holders = {e: str(r.id) for r in core.reservations for e in r.elements}
        self.world.store._holdings = Holdings(holders)
        for name, switch in room.switches.items():
            self.world.switches[name].circuits = dict(switch.circuits)
        for datapath, tor in room.tors.items():
            self.world.tors[datapath].rules = {forward.key: (forward.outputs, number) for number, forward in tor.held}
        for device in self.world.devices:
            self.world.device(device).up = True

    def check_all(self) -> None:
        """I1 to I11, but for what only a bystander of every step can know."""
        self.i1_one_holder()
        self.i2_marks_are_journalled()
        self.i3_observed_is_desired()
        check_desired(self.world)
        self.i4_one_end()
        self.i6_who_stays_is_served()
        self.i8_journal_is_the_state()
        self.i9_bounded()
        self.i11_leaves_get_their_light()
        self.i13_devices_are_as_it_says()

    def i3_observed_is_desired(self) -> None:
        """And a controller that begins with this journal finds nothing to do."""
        copy = self.copy_of_world()
        self._check_convergence(copy)


def check_devices(room: Room) -> None:
    """I10: whatever has happened, no ToR took a write of an older leader."""
    for tor in room.tors.values():
        assert not tor.wrong, f"ToR {tor.datapath} accepted {tor.wrong}"


def check_clients(histories: Histories) -> None:
    """Nothing that was acknowledged is lost, nothing is done twice, and nobody goes back in time."""
    assert not histories.faults, histories.faults
    for key, operations in histories.of.items():
        found = verdict(operations)
        assert found.is_linearizable, f"{key}: {found}"


def check_late_writes(room: Room, told: Sequence[tuple[float, str]]) -> None:
    """What an older leader's late command has made was taken away, and a line of the log says so.

    Unless a reservation has wanted it since: who had it made anew, or tried to, has taken it away as its own.
    """
    for at, circuit in room.came_late:
        lines = [line for moment, line in told if moment >= at and f"{circuit.input} to {circuit.output}" in line]
        again = [
            written
            for switch in room.switches.values()
            for written in switch.written
            if written.at > at and circuit in (*written.connected, *written.disconnected)
        ]
        assert lines or again, f"{circuit} came late at {at:.3f}, and nobody says that it was taken away"
    room.came_late.clear()


def check_ends(room: Room) -> None:
    """No controller ended by a fault of its own."""
    for controller in room.controllers:
        assert not controller.died, f"{controller.address} ended: {controller.died}"
