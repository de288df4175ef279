"""An episode: rounds of faults under load, after each of which the invariants must hold again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from blast_controller.ops.logging import FIELDS
from blast_controller.store.etcd.followed import FollowedJournal
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.holdings import Holdings
from blast_controller.store.rows import encode
from tests.soak.episodes import Counts
from tests.support.controller.core_checks import check_desired
from tests.support.controller.core_invariants import Invariants
from tests.support.controller.core_light import LightWorld
from tests.support.controller.fake_devices import FakeSwitch, FakeTor
from tests.support.controller.modeled_etcd import InstantNetwork, ModeledConnection
from tests.support.succession.clients import Histories, Job, Reader
from tests.support.succession.faults import FAULTS, TAKEOVER_SECONDS, Fault, phases
from tests.support.succession.history import verdict
from tests.support.succession.room import AUDIT, Controller, Room, simulated

LATEST = 7.0
"""Seconds after which late messages have arrived."""
QUIET = 0.3
"""Seconds without any movement."""


class Simulation:
    """One room made from a seed; `counts` has the number of meetings of faults and phases, `log` gets the messages."""

    def __init__(
        self,
        seed: int,
        counts: Counts,
        log: Callable[[str], None] = lambda line: None,
        faults: Sequence[Fault] = FAULTS,
    ) -> None:
        self.room = Room(seed)
        self._faults = faults
        self.histories = Histories(self.room)
        self.jobs = [Job(self.room, self.histories, f"job{number}") for number in range(3)]
        self.readers = [Reader(self.room, self.histories, f"reader{number}") for number in range(2)]
        self._counts, self._log = counts, log
        self._was_late = False
        self._undone: list[tuple[float, str]] = []

    def play(self, rounds: int) -> None:
        """Run the simulation. Raises an exception on failure."""
        with simulated(self.room), self._logged():
            try:
                self._begin()
                for number in range(rounds):
                    self._log(f"{self.room.scheduler.now:.3f} round {number}")
                    self._round()
                self._end()
            finally:
                for process in (*self.room.of_process, *(one.process for one in (*self.jobs, *self.readers))):
                    self.room.scheduler.end(process)

    def _begin(self) -> None:
        self.room.begin()
        for client in (*self.jobs, *self.readers):
            client.start()
        self.room.settle(self._is_led, "one controller to lead at the start")

    def _round(self) -> None:
        room, dice = self.room, self.room.dice
        room.is_frozen = False
        target = self.histories.granted + dice.number(0, 2)
        room.scheduler.run(room.scheduler.now + 3.0, lambda: self.histories.granted >= target)
        last = 0.0
        for _ in range(dice.pick([1, 1, 2, 3])):
            begins, lasts = dice.number(0, 1500) / 1000, dice.pick([50, 300, 1500, 4000]) * dice.number(50, 100) / 1e5
            last = max(last, begins + lasts)
            room.scheduler.after(begins, self._fault(dice.pick(self._faults), lasts))
        room.scheduler.run(room.scheduler.now + last + 2 * TAKEOVER_SECONDS + dice.number(0, 1000) / 1000)
        self._check()

    def _fault(self, fault: Fault, seconds: float) -> Callable[[], None]:
        def begin() -> None:
            room = self.room
            for phase in phases(room):
                self._counts[phase, fault.__name__] += 1
            leading = [one.address for one in room.leading]
            self._log(f"{room.scheduler.now:.3f} {fault.__name__} for {seconds:.3f} s, {leading} lead")
            self._was_late = self._was_late or fault.__name__ == "late_writes"
            heal = fault(room)

            def end() -> None:
                self._log(f"{room.scheduler.now:.3f} {fault.__name__} is over")
                heal()

            room.scheduler.after(seconds, end)

        return begin

    # ---------------------------------------------------------------------------------------------------- checking

    def _check(self) -> None:
        room = self.room
        room.settle(self._is_led, "one controller to lead after the faults")
        room.is_frozen = True
        self._deliver_late_writes()
        self._settle_down("with grants")
        self._check_all()

    def _end(self) -> None:
        """End the simulation: release all requests, and check that nothing is left anywhere."""
        room = self.room
        room.is_frozen = False
        for client in (*self.jobs, *self.readers):
            client.is_stopping = True
        room.settle(lambda: all(job.is_done for job in self.jobs), "all requests to be over")
        self._deliver_late_writes()
        room.settle(lambda: self._is_led() and not self._reservations(), "the last light to go")
        self._settle_down("at the end")
        self._check_all()
        assert not any(switch.circuits for switch in room.switches.values()), "light is left"
        assert not any(tor.held for tor in room.tors.values()), "rules are left"

    def _deliver_late_writes(self) -> None:
        if self._was_late:
            self._was_late = False
            self.room.scheduler.run(self.room.scheduler.now + LATEST + 2 * AUDIT)

    def _settle_down(self, when: str) -> None:
        since = [self.room.scheduler.now]

        def is_quiet() -> bool:
            if not self._is_quiet():
                since[0] = self.room.scheduler.now
            return self.room.scheduler.now - since[0] > QUIET

        self.room.settle(is_quiet, f"quiet {when}")

    def _check_all(self) -> None:
        (leader,) = self.room.leading
        check_ends(self.room)
        check_late_writes(self.room, self._undone)
        self._undone.clear()
        check_devices(self.room)
        AfterFaults(self.room, leader).check_all()
        check_clients(self.histories)

    def _is_led(self) -> bool:
        return len(self.room.leading) == 1 and all(one.is_up for one in self.room.controllers)

    def _is_quiet(self) -> bool:
        if not self._is_led():
            return False
        runtime = _runtime(self.room.leading[0])
        core = runtime.core
        is_writing = runtime._open or runtime._journal.filling or runtime._journal.is_writing
        is_waiting = is_writing or core.view.is_auditing or core.view.away
        return not is_waiting and not any(r.busy for r in core.reservations)

    def _reservations(self) -> list:
        return list(_runtime(self.room.leading[0]).core.reservations)

    @contextmanager
    def _logged(self) -> Iterator[None]:
        """Collect the log records of the controllers, and forward them nowhere."""
        handler, logs = logging.Handler(), [logging.getLogger(name) for name in ("blast_controller", "blast")]
        handler.emit = self._collect  # type: ignore[method-assign]
        before = [(log, log.level, log.propagate) for log in logs]
        for log in logs:
            log.addHandler(handler)
            log.setLevel(logging.WARNING)
            log.propagate = False
        try:
            yield
        finally:
            for log, level, propagate in before:
                log.removeHandler(handler)
                log.setLevel(level)
                log.propagate = propagate

    def _collect(self, record: logging.LogRecord) -> None:
        scheduler = self.room.scheduler
        if scheduler.process.ended:
            # Its threads end at once, without a message.
            return
        if getattr(record, FIELDS, {}).get("event") == "late_write":
            self._undone.append((scheduler.now, record.getMessage()))
        self._log(f"{scheduler.now:.3f} {scheduler.process.name}: {record.getMessage()}")
        if record.exc_info and record.exc_info[1] is not None:
            self._log(logging.Formatter().formatException(record.exc_info))


def _runtime(controller: Controller):
    assert controller.daemon is not None
    return controller.daemon.runtime


class AfterFaults(Invariants):
    """The room as a world of the core's machine: the state of the devices, the journal, and the leader's core."""

    def __init__(self, room: Room, leader: Controller) -> None:
        super().__init__()
        assert leader.daemon is not None
        core = leader.daemon.runtime.core
        self.world = LightWorld(room.fabric, room.settings, measures=False, sees_links=False)
        self.world.core, self.world.now = core, room.scheduler.now
        self.contents = {key: request.content for key, request in core.requests.items()}
        journal = FollowedJournal(ModeledConnection(room.etcd, InstantNetwork()), Keys("/simulated/")).state()
        self.world.store.close()
        self.world.store._state = {(record.kind, record.key): encode(record.body) for record in journal.records()}
        holders = {e: str(r.id) for r in core.reservations for e in r.elements}
        self.world.store._holdings = Holdings(holders)
        for name, switch in room.switches.items():
            self.world.switches[name] = FakeSwitch(name, dict(switch.circuits), up=True)
        for datapath, tor in room.tors.items():
            rules = {forward.key: (forward.outputs, number) for number, forward in tor.held}
            self.world.tors[datapath] = FakeTor(datapath, rules, up=True)

    def check_all(self) -> None:
        """Check I1 to I11, without the checks that need an observer of every step."""
        self.i1_one_holder()
        self.i2_marks_are_journaled()
        # I3: a controller that begins with this journal finds nothing to do.
        self._check_convergence(self.copy_of_world())
        check_desired(self.world)
        self.i4_one_end()
        self.i6_granted_groups_are_served()
        self.i8_journal_is_the_state()
        self.i9_bounded()
        self.i11_leaves_get_their_light()
        self.i13_view_matches_devices()


def check_devices(room: Room) -> None:
    """Check I10: no ToR has accepted a write of an older leader."""
    for tor in room.tors.values():
        assert not tor.wrong, f"ToR {tor.datapath} accepted {tor.wrong}"


def check_clients(histories: Histories) -> None:
    """Check that no acknowledged call is lost or executed twice, and that no reader sees older states."""
    assert not histories.faults, histories.faults
    for key, operations in histories.of.items():
        found = verdict(operations)
        assert found.is_linearizable, f"{key}: {found}"


def check_late_writes(room: Room, messages: Sequence[tuple[float, str]]) -> None:
    """Check that effects of an older leader's late command are removed, with a line in the log.

    A reservation may have needed it since: the controller that made it again, or tried to, has removed it as its own.
    """
    for at, circuit in room.late_circuits:
        lines = [line for moment, line in messages if moment >= at and f"{circuit.input} to {circuit.output}" in line]
        again = [
            written
            for switch in room.switches.values()
            for written in switch.written
            if written.at > at and circuit in (*written.connected, *written.disconnected)
        ]
        assert lines or again, f"{circuit} came late at {at:.3f}, and no log line reports its removal"
    room.late_circuits.clear()


def check_ends(room: Room) -> None:
    """Check that no controller ended by a fault of its own."""
    for controller in room.controllers:
        assert not controller.died, f"{controller.address} ended: {controller.died}"
