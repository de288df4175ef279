"""The core, its journal and its devices under random actions of applications, operators, devices and power cuts.

Every action draws its choices from dice, so that the same machine runs under Hypothesis and, fast, for a long time.
Events reach the core late; the controller may die before any of its deeds; devices may keep or lose their state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from ipaddress import IPv4Network

from algorithms.scheduling.contention import Chosen
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.commands import Command, Publish
from blast_controller.core.model.errors import KeyReusedError, RequestError
from blast_controller.core.model.events import (
    AuditRequested,
    ClientsVanished,
    DeviceConnected,
    DeviceEvent,
    DrainRequested,
    ElementQuarantined,
    ElementReleased,
    Event,
    ExtendRequested,
    FinishRequested,
    Optimized,
    ProgressReported,
    RequestSubmitted,
    SettingsChanged,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import Fabric, StaticTree
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import EventKind, Extension, MulticastRequest, RequestKey
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.rollout.reservation import Reservation
from tests.support.controller.core import by_sides, make_fabric, multicast
from tests.support.controller.core_checks import Life, audited, image
from tests.support.controller.core_faults import Faults, is_passing, phase_of
from tests.support.controller.core_light import LightWorld
from tests.support.controller.core_power import with_optics
from tests.support.dice import Dice

FEW_ADDRESSES = IPv4Network("239.77.0.0/29")
POOR = {"default": TenantLimits(max_pending=3, max_splitters=1), "biology": TenantLimits(max_light_seconds=30.0)}
FIXED = (
    StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 61}, frozenset({"r4h2"})),
    StaticTree("t2", None, 0, "r1h2", {"r2": 62, "r1": 63}, frozenset({"r3h2"})),
)
SCENES: dict[str, tuple[Fabric, CoreSettings]] = {
    "cascades": (make_fabric(6, [4, 2, 2]), CoreSettings(max_events=3, lease_maximum=30.0)),
    "kept warm": (make_fabric(6, [4, 2, 2]), CoreSettings(keep_warm=15.0, max_events=2)),
    "kept warm, with a reserve": (
        make_fabric(4, [4, 4, 2, 2], ports=2, switches=2),
        CoreSettings(keep_warm=15.0, warm_reserve=0.5),
    ),
    "directional": (by_sides(make_fabric(5, [4, 2])), CoreSettings(keep_warm=15.0, warm_reserve=0.5)),
    "kept warm, paper": (make_fabric(5, [4, 4, 2], ports=2), CoreSettings(keep_warm=60.0, policy="paper")),
    "two ports, shared datapaths": (make_fabric(4, [4, 4, 2], ports=2, shared=2), CoreSettings()),
    "two switches": (make_fabric(5, [4, 4, 2, 2], switches=2), CoreSettings(reconcile_every=7.0)),
    "loop leaf": (make_fabric(5, [4, 4]), CoreSettings(loop_leaf=True)),
    "at most two splitters": (make_fabric(6, [4, 2, 2, 2]), CoreSettings(max_splitters_per_tree=2)),
    "paper's testbed": (make_fabric(4, [4, 4], shared=4), CoreSettings(group_network=FEW_ADDRESSES)),
    "static trees": (
        replace(make_fabric(4, [2, 2]), static_trees={tree.name: tree for tree in FIXED}),
        CoreSettings(link_wait=2.0),
    ),
    # No path through a 1:2 below a 1:4 has enough power; r4 and r5 bear one 1:2, r2 a 1:4 or two 1:2.
    "power budget": (
        with_optics(make_fabric(6, [4, 2, 2, 2]), {"r4": 5.0, "r5": 5.0, "r6": 3.0}, overload={"r2": -5.0}),
        CoreSettings(keep_warm=15.0),
    ),
    "power budget, two ports": (
        with_optics(make_fabric(4, [4, 2, 2], ports=2, switches=2), {"r3": 5.0, "r4": 3.0}, overload={"r2": -5.0}),
        CoreSettings(max_splitters_per_tree=2),
    ),
    # Without attenuators only outputs of several splitters suit r2 and r3.
    "power budget, attenuators": (
        with_optics(
            make_fabric(5, [4, 2, 2]), {"r4": 5.0, "r5": 3.0}, overload={"r2": -9.0, "r3": -5.0}, attenuation=8.0
        ),
        CoreSettings(keep_warm=15.0),
    ),
    "optimized": (make_fabric(6, [4, 2, 2]), CoreSettings(optimize=0.5)),
    "optimized, two switches": (
        make_fabric(5, [4, 4, 2, 2], switches=2),
        CoreSettings(
            optimize=0.5,
            keep_warm=15.0,
            warm_reserve=0.3,
            policy="smith",
            tenants={"biology": TenantLimits(max_splitters=1)},
        ),
    ),
    "limited tenants": (make_fabric(5, [2, 2, 4], ports=2), CoreSettings(tenants=POOR, group_network=FEW_ADDRESSES)),
}
TENANTS = ("default", "biology")
CLIENT_DISCONNECTED = "The client disconnected before the grant and did not reconnect in time."


class CoreMachine(Faults):
    """A world and its random actions. `counts` collects how often each fault met each phase."""

    def __init__(self, dice: Dice, counts: Counter[tuple[str, str]] | None = None) -> None:
        super().__init__()
        self.counts = Counter() if counts is None else counts
        fabric, chosen = SCENES[dice.pick(sorted(SCENES))]
        self.hosts = sorted(fabric.hosts)
        self.saved: dict[Device, dict] = {}
        self.world = LightWorld(fabric, chosen, measures=dice.pick([False, True]), sees_links=dice.pick([False, True]))
        self.life = Life(self.world.core)
        self.world.on_call = self.remember
        self.world.on_dark = self.dark_leaf
        self.world.on_publish = self.check_publish
        self.world.on_command = self.check_command
        self.world.on_crash = self.crashed
        self.world.after_operation = self.i6_granted_groups_are_served
        self.world.connect_all()
        self.world.on_delivered = self.delivered
        for _ in range(dice.number(1, 3)):
            self.submit_request(dice)
            self.world.settle()

    def enabled(self, action: str) -> bool:
        """Return True if an action is possible now."""
        devices = [self.world.device(name) for name in self.world.devices]
        match action:
            case "start":
                return not self.world.running
            case "late_writes":
                return any(device.in_flight for device in devices)
            case "think":
                return bool(self.world.questions)
            case "late_answers":
                return bool(self.world.late)
            case "come_back" | "connect_all":
                return self.world.running and not all(device.up for device in devices)
            case "lose":
                return any(device.up for device in devices)
            case "tamper" | "break_fiber" | "links":
                return True
            case _:
                return self.world.running

    @property
    def in_transition(self) -> bool:
        """Return True if anything is in a transient phase."""
        return self.bench() is not None or any(map(is_passing, self.reservations()))

    @property
    def is_repairing(self) -> bool:
        """Return True while a dark leaf moves to another splitter output, the rarest phase."""
        return any(phase_of(r) == "repairing" for r in self.reservations())

    # -------------------------------------------------------------------------------------- applications

    def ask(self, event: Event, hurry: bool = False) -> None:
        """Queue an event of an application or operator, maybe before others. A refusal must change nothing."""

        def arrive() -> None:
            if isinstance(event, SettingsChanged):
                # Until now, the old settings decided which requests were forgotten or got splitters.
                self.i5_answers_stay()
                self.check_shares_of_tenants(self.journal.reservations())
            before = "" if isinstance(event, TimePassed) else image(self.core)
            # The core may not have decided on the previous event yet.
            alone = not self.world.undecided
            known = self.core.requests.get(event.request.id) if isinstance(event, RequestSubmitted) else None
            pending = self.core.pending_count_of(event.request.tenant) if isinstance(event, RequestSubmitted) else 0
            if isinstance(event, RequestSubmitted) and known is None:
                # The request is forgotten or unknown: later answers concern another one.
                self.published.pop(event.request.id, None)
            try:
                commands = self.world.handle(event)
                if isinstance(event, TimePassed):
                    self.world.catch_up()
            except RequestError as error:
                assert image(self.core) == before
                if known is not None and isinstance(event, RequestSubmitted):
                    assert isinstance(error, KeyReusedError) == (known.content != event.request)
                return
            if isinstance(event, RequestSubmitted) and self.world.running:
                self.admitted(event.request, known.content if known else None, commands if alone else [], pending)
                if known is None:
                    self.submitted.discard(event.request.id)
                if not event.attached:
                    self.submitted.add(event.request.id)
            if isinstance(event, TimePassed) and self.world.running:
                self.ticked_at = self.world.now

        if not self.world.running:
            return
        if hurry:
            self.world.inbox.appendleft(arrive)
        else:
            self.world.inbox.append(arrive)

    def admitted(self, request: MulticastRequest, known: MulticastRequest | None, commands: list, pending: int) -> None:
        """Check the answer to an application: a repeated key with the same content must change nothing."""
        if known is not None:
            assert known == request, "a key was accepted with other content"
            assert not commands
        else:
            maximum = self.core.settings.limits(request.tenant).max_pending
            assert maximum is None or pending < maximum
        self.accepted.add(request.id)

    def submit_request(self, dice: Dice) -> None:
        number = len(self.contents)
        tenant, key = dice.pick(TENANTS), dice.pick([f"k{number}", f"k/{number}"])
        size = dice.number(2, 6)
        sender = dice.pick(self.hosts)
        others = [host for host in self.hosts if host != sender]
        receivers = (dice.some(others, size) or [dice.pick(others)])[:size]
        request = MulticastRequest(
            key,
            tenant,
            sender,
            tuple(receivers),
            dice.pick([10**6, 10**9, 10**11]),
            pending_timeout=dice.pick([None, None, None, 5.0]),
            may_split=dice.rarely(),
            may_pause=dice.rarely(),
        )
        self.contents[request.id] = request
        self.ask(RequestSubmitted(request, attached=dice.pick([False, True])))

    def submit(self, dice: Dice) -> None:
        self.submit_request(dice)
        self.go_on(dice)

    def repeat(self, dice: Dice) -> None:
        """Repeat a call, early or late, with other content, or with invalid content."""
        known = self.contents[self.some_key(dice)]
        how = dice.pick(["again", "again", "other content", "nonsense"])
        anything = tuple(dice.some([*self.hosts, "unknown"], 9))
        nonsense = MulticastRequest("x" * dice.number(0, 70), "default", self.hosts[0], anything, dice.number(-1, 1))
        request = {"again": known, "other content": replace(known, receivers=anything), "nonsense": nonsense}[how]
        self.contents.setdefault(request.id, request)
        self.note_request("RPC " + ("duplicated" if how == "again" else how), known.id)
        self.ask(RequestSubmitted(request, attached=dice.rarely()), hurry=dice.rarely())

    def note_request(self, fault: str, key: RequestKey) -> None:
        request = self.core.requests.get(key) if self.world.running else None
        if request is not None:
            found = [self.core.view.reservation(part.reservation or 0) for part in request.parts]
            self.note(fault, [r for r in found if r is not None], [part.state for part in request.parts])

    def some_key(self, dice: Dice) -> RequestKey:
        """Return a key, usually of a request that has not ended."""
        alive = [key for key, request in self.core.requests.items() if not request.state.final]
        return dice.pick(sorted(self.contents) if dice.rarely() else sorted(alive or self.contents))

    def progress(self, dice: Dice) -> None:
        """Report a sender's progress, often too high or lower than before."""
        key = self.some_key(dice)
        part = dice.number(0, 1)
        size = self.contents[key].bytes
        self.ask(ProgressReported(key, part, dice.pick([0, size // 4, size // 2, size - 1, size, size + 1])))
        self.go_on(dice)

    def extend(self, dice: Dice) -> None:
        active = [key for key, request in self.core.requests.items() if request.state is PartState.ACTIVE]
        key = dice.pick(sorted(active)) if active and not dice.rarely() else self.some_key(dice)
        request = self.core.requests.get(key)
        if request is None or dice.rarely():
            members, others = self.hosts, self.hosts
        else:
            members = list(request.current.receivers)
            others = sorted(set(self.hosts) - set(members) - {request.current.sender})
        extension = Extension(
            tuple(dice.some(others, 3)), tuple(dice.some(members, 2)), dice.pick([0.0, 5.0]), dice.pick([0, 10**9])
        )
        self.ask(ExtendRequested(key, extension), hurry=dice.rarely())
        self.go_on(dice)

    def let_go(self, dice: Dice) -> None:
        key = self.some_key(dice)
        how, event = dice.pick(
            [
                ("withdrawn", WithdrawRequested(key)),
                ("finished", FinishRequested(key, 0)),
                ("finished twice", FinishRequested(key, 0)),
                ("client vanished", ClientsVanished((key, self.some_key(dice)))),
            ]
        )
        self.note_request(how, key)
        self.ask(event)
        if how == "finished twice":
            self.ask(event)
        self.go_on(dice)

    def think(self, dice: Dice) -> None:
        """Answer for the optimizer: with a good solution, with an empty one, or with an impossible one."""
        how = dice.pick(["well", "well", "empty", "nonsense"])
        if how == "well":
            self.world.think()
            return
        question = self.world.questions.popleft()
        names = [(key, dice.number(0, 2)) for key in self.contents] if how == "nonsense" else []
        switches = [*self.world.switches, "nowhere"]
        chosen = tuple(Chosen(n, dice.pick(switches), dice.pick([(), (4,), (2, 2), (7,)])) for n in names)
        self.world.post(Optimized(dice.pick([question.revision, question.revision, 0]), chosen))
        if how == "nonsense":
            self.world.post(Optimized(question.revision))

    def wait(self, dice: Dice) -> None:
        self.world.now += dice.pick([0.1, 1.0, 1.0, 3.0, 3.0, 20.0])
        self.ask(TimePassed())
        for key, end in self.leases.items():
            if end <= self.world.now:
                self.note_request("lease over", key)

    # ------------------------------------------------------------------------------------------ operator

    def operate(self, dice: Dice) -> None:
        """Run an operation: quarantine, drain, new settings, an audit of devices."""
        how = dice.pick(["quarantine", "release", "audit", "audit", "dry run", "settings", "drain", "drain over"])
        settings = self.core.settings
        events: dict[str, Callable[[], Event]] = {
            "quarantine": lambda: ElementQuarantined(dice.pick(self.core.view.elements), dice.pick(["dirty", ""])),
            "release": lambda: ElementReleased(dice.pick(sorted(self.core.view.quarantined) or ["port:r1/50"])),
            "audit": lambda: AuditRequested(dry_run=False),
            "dry run": lambda: AuditRequested(dry_run=True),
            "settings": lambda: SettingsChanged(
                replace(
                    settings,
                    lease_factor=dice.pick([2.0, 1.0, 3.0]),
                    failures_allowed=dice.pick([3, 1]),
                    remember_ended=dice.pick([3600.0, 15.0]),
                    reconcile_every=dice.pick([None, 7.0]),
                    warm_reserve=dice.pick([settings.warm_reserve, 0.0, 0.5, 1.0]),
                    tenants=dice.pick([settings.tenants, POOR, {}]),
                )
            ),
            "drain": lambda: DrainRequested(on=True),
            "drain over": lambda: DrainRequested(on=False),
        }
        self.note(how, self.reservations(), self.part_states())
        self.ask(events[how]())
        self.go_on(dice)

    def audit_twice(self, dice: Dice) -> None:
        """Run two audits in a quiet world: the first one repairs everything, the second one finds nothing."""
        if not self.world.running or not all(self.world.device(name).up for name in self.world.devices):
            return
        self.world.settle()
        if not self.world.running or self.core.view.is_auditing:
            return
        armed, self.world.crash_after = self.world.crash_after, None
        before = (self.device_states(), repr(self.core.requests), repr(list(self.core.reservations)))
        planned = audited(self.world, dry_run=True)
        assert before == (self.device_states(), repr(self.core.requests), repr(list(self.core.reservations)))
        done = audited(self.world, dry_run=False)
        assert sorted(planned.commands) == sorted(done.commands), "a dry run must report the real commands"
        again = audited(self.world, dry_run=False)
        for name in self.silent & set(self.world.devices):
            self.silent.discard(name)
        if not self.core.next_timer() or not any(r.busy for r in self.core.reservations):
            assert again.commands == (), again
        self.world.crash_after = armed

    # -------------------------------------------------------------------------------------------- moments

    def remember(self, method: str, arguments: tuple, result: list[Command]) -> None:
        """Record an executed call of the core; a takeover of a journal starts a new life."""
        if method == "restore":
            self.life = Life(self.core)
        self.life.note(method, arguments, result)

    def crashed(self) -> None:
        self.life.live_again()
        super().crashed()

    def delivered(self, event: DeviceEvent | Optimized) -> None:
        if isinstance(event, DeviceConnected):
            self.unprocessed[event.device] -= 1

    def check_publish(self, publish: Publish) -> None:
        """Check that a grant is sent only when the devices hold all of it, and that repeated messages agree."""
        event, key = publish.event, publish.request
        assert event.reason != CLIENT_DISCONNECTED or key not in self.submitted, f"{key} was submitted and is given up"
        reported = self.published.setdefault(key, {})
        assert reported.setdefault(event.sequence, event) == event
        if event.kind is EventKind.GRANTED and event.grant:
            self.leases[key] = self.world.now + event.grant.lease
            if event.grant.reservation % 2:
                self.save()
        elif event.kind is EventKind.CHANGED and event.grant and event.reason is None:
            before = [e.grant for number, e in self.published[key].items() if number < event.sequence and e.grant]
            if before:
                self.lengthen(key, before[-1].lease, event.grant.lease)
            else:
                # The controller died before it could send the grant, so that the lease is unknown.
                self.leases.pop(key, None)
        elif event.kind in (EventKind.REVOKED, EventKind.ENDED):
            end = self.leases.pop(key, None)
            if event.state is PartState.EXPIRED and end is not None and not self.contents[key].may_pause:
                assert end <= self.world.now, "the lease ended early"
        if event.grant is not None and event.reason is None:
            self.check_granted(publish)

    def lengthen(self, key: RequestKey, before: float, after: float) -> None:
        """Check the change of a lease's length."""
        end_before = self.leases.get(key, self.world.now + before)
        self.leases[key] = end_before + max(0.0, after - before)
        if self.contents[key].may_pause:
            # Another lease may have begun.
            self.leases[key] = max(self.leases[key], self.world.now + after)

    def check_granted(self, publish: Publish) -> None:
        part = self.core.requests[publish.request].parts[publish.event.part]
        reservation = self.core.view.reservation(part.reservation or 0)
        if reservation is None:
            return
        assert publish.event.grant is not None
        if part.grant != publish.event.grant:
            # The state already includes the effect of the next event.
            return
        assert set(reservation.layout.receivers) == set(publish.event.grant.receivers)
        if any(not self.is_synchronized(name) for name in self.harmed.get(reservation.id, ())):
            return
        # The client's change is in effect, also where a leaf that has gone dark is being moved already.
        if publish.event.kind is EventKind.CHANGED and (self.is_harmed(reservation) or reservation.change is not None):
            return
        for name in reservation.layout.device_state.devices:
            # It may have confirmed, lost everything, come back and been asked again before anything was let out.
            asked_again = self.world.together and reservation.rollout.waits_for(name)
            assert asked_again or self.holds_all(reservation, name), (
                f"{name} has not done its share of {reservation.id}"
            )
        if publish.event.kind is EventKind.GRANTED and not self.world.together:
            self.check_lit(reservation)

    def check_lit(self, reservation: Reservation) -> None:
        """Check that no leaf is known to be dark when the grant is sent."""
        tree = reservation.layout.tree
        target = reservation.rollout.targets.get(tree.switch) if tree else None
        dark = self.world.dark_answers.get((reservation.id, target.number)) if target else None
        assert not dark, f"granted, and no light at {dark}"
        for leaf in tree.leaves if tree else ():
            place = (self.world.fabric.racks[leaf.port.rack].datapath, leaf.port.port)
            if place in self.core.view.without_link:
                # The fibers of a static tree are fixed: waiting cannot help, and the answer states so.
                assert isinstance(tree, StaticLight), f"granted, and {place} has no link"
                reason = self.core.requests[reservation.request].parts[reservation.part].reason
                assert reason is not None and reason.startswith("no light"), reason

    # ------------------------------------------------------------------------------------------------ end

    def finish(self) -> None:
        """End all requests and connect all devices; check that nothing is left anywhere."""
        self.world.crash_after = None
        if not self.world.running:
            self.start_over(self.world.now)
        self.reconnect()
        self.world.deliver()
        self.mend_everything()
        self.finish_check()
        for key in list(self.core.requests):
            if not self.core.requests[key].state.final:
                self.world.handle(WithdrawRequested(key))
        for pause in (self.core.settings.keep_warm, *[self.core.settings.retry_after] * 5):
            self.world.settle()
            self.world.now += pause
            self.world.catch_up()
        assert not list(self.core.reservations)
        assert self.core.view.holders == {}
        self.world.settle()
        audited(self.world, dry_run=False)
        self.nothing_is_left_on_devices()
        self.ask_once_more()
        self.life.live_again()

    def nothing_is_left_on_devices(self) -> None:
        """Check that the devices hold foreign state only."""
        assert all(tor.rules == {} for tor in self.world.tors.values())
        assert all(switch.held == switch.foreign for switch in self.world.switches.values())
        self.world.handle(SettingsChanged(replace(self.core.settings, reconcile_every=None)))
        self.world.now += 2 * 3600.0
        self.world.catch_up()
        self.world.settle()
        assert not self.core.requests
        self.checked_fibers()
        self.world.now += 60.0
        self.world.catch_up()
        assert self.core.next_timer() is None

    def ask_once_more(self) -> None:
        """Submit another request, which reveals state that rejected requests have left behind."""
        sender, *others = self.hosts
        receivers = [host for host in others if self.world.fabric.hosts[host].rack in ("r2", "r3")]
        with suppress(RequestError):
            self.world.handle(RequestSubmitted(multicast("next", sender, receivers)))


ACTIONS = (
    "submit",
    "repeat",
    "progress",
    "extend",
    "let_go",
    "wait",
    "operate",
    "audit_twice",
    "deliver",
    "work",
    "late_answers",
    "late_writes",
    "think",
    "lose",
    "come_back",
    "reboot",
    "connect_all",
    "tamper",
    "break_fiber",
    "links",
    "alarm",
    "verify",
    "arm",
    "crash",
    "start",
)
"""The actions, by the names of the methods."""

OFTEN = ("submit", "extend", "extend", "extend", "connect_all", "start", "alarm", "alarm", "links", "verify")
"""Actions that bring reservations into the rarer phases, so that a long run covers more pairs."""

TROUBLES = (
    "repeat",
    "repeat",
    "let_go",
    "let_go",
    "wait",
    "operate",
    "operate",
    "operate",
    "late_answers",
    "late_writes",
    "late_writes",
    "lose",
    "come_back",
    "reboot",
    "reboot",
    "tamper",
    "tamper",
    "break_fiber",
    "links",
    "alarm",
    "verify",
    "work",
)
"""Faults that can occur during a change."""
