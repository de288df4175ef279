"""The core against a fake world, at random: whatever applications, operators and devices do, in whatever order.

Events reach the core late and in order, as they do through the runtime's inbox. A device that comes back without some
of what it held has harmed reservations: nothing can be promised for those until the core has heard of it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from blast_controller.core.commands import Publish
from blast_controller.core.errors import RequestError
from blast_controller.core.events import (
    ClientVanished,
    Device,
    DeviceEvent,
    DeviceUp,
    ElementQuarantined,
    ElementReleased,
    Event,
    ExtensionAsked,
    FinishAsked,
    RequestSubmitted,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.fabric import CrossConnect
from blast_controller.core.part_states import PartState
from blast_controller.core.requests import EventKind, Extension, MulticastRequest, Part, Request
from blast_controller.core.reservation import Reservation
from blast_controller.core.reservation_states import ReservationState
from blast_controller.core.settings import CoreSettings
from tests.support.core import FakeSwitch, World, key_of, make_fabric, multicast

FABRICS: dict[str, tuple[Any, CoreSettings]] = {
    "cascades": (make_fabric(6, [4, 2, 2]), CoreSettings()),
    "two ports, shared datapaths": (make_fabric(4, [4, 4, 2], ports=2, shared=2), CoreSettings()),
    "two switches": (make_fabric(5, [4, 4, 2, 2], switches=2), CoreSettings()),
    "loop leaf": (make_fabric(5, [4, 4]), CoreSettings(loop_leaf=True)),
    "at most two splitters": (make_fabric(6, [4, 2, 2, 2]), CoreSettings(most_splitters=2)),
    "paper's testbed": (make_fabric(4, [4, 4], shared=4), CoreSettings()),
}
ENDED = (PartState.DONE, PartState.WITHDRAWN, PartState.EXPIRED, PartState.FAILED)
HELD = (ReservationState.LIT, ReservationState.CHANGING)


_then = strategies.sampled_from(["well", "with trouble", "not yet"])
_rarely = strategies.integers(0, 5).map(lambda n: n == 0)
_nobody = strategies.just(())


class CoreAndDevices(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[str, MulticastRequest] = {}
        self.harmed: dict[int, set[Device]] = {}
        self.unheard: Counter[Device] = Counter()

    @initialize(name=strategies.sampled_from(sorted(FABRICS)), data=strategies.data(), groups=strategies.integers(1, 3))
    def begin(self, name: str, data: Any, groups: int) -> None:
        fabric, chosen = FABRICS[name]
        self.world = World(fabric, chosen)
        self.core = self.world.core
        self.hosts = sorted(fabric.hosts)
        self.world.connect_all()
        self.world.on_publish = self.check_publish
        self.world.on_delivered = self.heard
        self.world.after_operation = self.check_moment
        for _ in range(groups):
            self.submit(data, then="well")

    # -------------------------------------------------------------------------------------- applications

    def ask(self, event: Event) -> None:
        """An application's or operator's event joins the queue; a refusal must change nothing."""

        def tell() -> None:
            before = self.everything()
            try:
                self.world.handle(event)
            except RequestError:
                assert self.everything() == before
                assert not self.core._outbox.drain()

        self.world.inbox.append(tell)

    def everything(self) -> str:
        core = self.core
        return repr(
            (
                core.requests,
                core._reservations.live,
                core.ledger.__dict__,
                core._pending,
                core._timers,
                core._decision_due,
            )
        )

    @rule(data=strategies.data(), then=_then)
    def submit(self, data: Any, then: str) -> None:
        key = f"k{len(self.contents)}"
        members = strategies.permutations(self.hosts), strategies.integers(2, 6)
        sender, *receivers = data.draw(members[0])[: data.draw(members[1])]
        size = data.draw(strategies.sampled_from([10**6, 10**9, 10**11]))
        patience = data.draw(strategies.sampled_from([None, None, None, 5.0]))
        self.contents[key] = multicast(key, sender, receivers, size, patience)
        self.ask(RequestSubmitted(self.contents[key]))
        self.go_on(then, data)

    @rule(data=strategies.data(), how=strategies.sampled_from(["again", "other content", "nonsense"]))
    def submit_vainly(self, data: Any, how: str) -> None:
        known = self.contents[self.some_key(data)]
        host = strategies.sampled_from([*self.hosts, "nobody"])
        anything = tuple(data.draw(strategies.lists(host, max_size=9)))
        events = {
            "again": known,
            "other content": replace(known, receivers=anything),
            "nonsense": multicast(
                "x", self.hosts[0], (self.hosts[0], *anything), data.draw(strategies.integers(-1, 1))
            ),
        }
        self.ask(RequestSubmitted(events[how]))

    def some_key(self, data: Any) -> str:
        """Mostly of a request that is not over."""
        alive = [key for _, key in self.core.requests if not self.core.requests[key_of(key)].state.final]
        return str(
            data.draw(strategies.sampled_from(sorted(self.contents if data.draw(_rarely) else alive or self.contents)))
        )

    @rule(data=strategies.data(), then=_then)
    def extend(self, data: Any, then: str) -> None:
        key = self.some_key(data)
        if key_of(key) not in self.core.requests or data.draw(_rarely):
            members, others = self.hosts, self.hosts
        else:
            current = self.core.requests[key_of(key)].current
            members = list(current.receivers)
            others = sorted(set(self.hosts) - set(members) - {current.sender})
        coming = strategies.lists(strategies.sampled_from(others), max_size=3, unique=True) if others else _nobody
        leaving = strategies.lists(strategies.sampled_from(members), max_size=2, unique=True)
        extension = Extension(
            tuple(data.draw(coming)),
            tuple(data.draw(leaving)),
            data.draw(strategies.sampled_from([0.0, 5.0])),
            data.draw(strategies.sampled_from([0, 10**9])),
        )
        self.ask(ExtensionAsked(key_of(key), extension))
        self.go_on(then, data)

    @rule(
        how=strategies.sampled_from(["withdraw", "finish", "vanish"]),
        then=_then,
        data=strategies.data(),
    )
    def let_go(self, how: str, then: str, data: Any) -> None:
        request = key_of(self.some_key(data))
        events = {
            "withdraw": WithdrawAsked(request),
            "finish": FinishAsked(request, 0),
            "vanish": ClientVanished(request),
        }
        self.ask(events[how])
        self.go_on(then, data)

    @rule(data=strategies.data(), out=strategies.booleans())
    def quarantine(self, data: Any, out: bool) -> None:
        element = data.draw(strategies.sampled_from(self.core.ledger.elements))
        self.ask(ElementQuarantined(element, "dirty") if out else ElementReleased(element))

    @rule(seconds=strategies.sampled_from([0.1, 1.0, 3.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds
        self.ask(Tick())

    # -------------------------------------------------------------------------------------------- devices

    @rule(count=strategies.integers(1, 4))
    def deliver(self, count: int) -> None:
        self.world.deliver(count)

    @rule(data=strategies.data())
    def work(self, data: Any) -> None:
        self.go_on("with trouble", data)

    def go_on(self, how: str, data: Any) -> None:
        """Everyone does all that there is to do, or some of it, with refusals and lost sessions."""
        if how == "well":
            self.world.settle()
        if how != "with trouble":
            return
        for _ in range(data.draw(strategies.integers(1, 12))):
            busy = [name for name in self.world.devices if self.world.device(name).queue]
            if busy and data.draw(strategies.booleans()):
                self.work_once(data.draw(strategies.sampled_from(busy)), data)
            else:
                self.world.deliver(1)

    def work_once(self, name: Device, data: Any) -> None:
        trouble = data.draw(strategies.sampled_from(["none", "denied", "none", "cut", "none"]))
        changes = len(self.world.device(name).queue[0].changes)
        positions = strategies.sets(strategies.integers(0, changes - 1), min_size=1)
        denied = data.draw(positions) if trouble == "denied" else ()
        self.world.work(name, denied, data.draw(strategies.integers(0, 3)) if trouble == "cut" else None)

    @rule(data=strategies.data())
    def lose(self, data: Any) -> None:
        up = [name for name in self.world.devices if self.world.device(name).up]
        if up and data.draw(strategies.booleans()):
            self.world.lose(data.draw(strategies.sampled_from(up)))

    @precondition(lambda self: any(not self.world.device(name).up for name in self.world.devices))
    @rule(data=strategies.data(), memory=strategies.sampled_from(["everything", "nothing", "a part"]))
    def come_back(self, data: Any, memory: str) -> None:
        name = data.draw(strategies.sampled_from([n for n in self.world.devices if not self.world.device(n).up]))
        device = self.world.device(name)
        before = self.held_by(name)
        if isinstance(device, FakeSwitch) and data.draw(_rarely):
            self.let_a_stranger_in(device, data)
        forgets = {"everything": lambda _: False, "nothing": lambda _: True, "a part": lambda x: hash(x) % 2 == 0}
        self.unheard[name] += 1
        self.world.come_back(name, forgets[memory])
        for reservation, count in before.items():
            if self.held_by(name)[reservation] < count:
                self.harmed.setdefault(reservation, set()).add(name)

    def let_a_stranger_in(self, switch: FakeSwitch, data: Any) -> None:
        """Somebody connects two elements that nobody holds."""
        ledger = self.core.ledger
        free_in = [p.input for p in self.world.fabric.ports_on(switch.name) if p.element not in ledger.holder]
        free_out = [
            s.input
            for s in self.world.fabric.splitters.values()
            if s.switch == switch.name and s.element not in ledger.holder
        ]
        if free_in and free_out:
            circuit = CrossConnect(
                switch.name, data.draw(strategies.sampled_from(free_in)), data.draw(strategies.sampled_from(free_out))
            )
            if circuit.input not in switch.circuits and circuit.output not in switch.circuits.values():
                switch.circuits[circuit.input] = circuit.output
                switch.foreign.add(circuit)

    @precondition(lambda self: any(s.foreign and not s.up for s in self.world.switches.values()))
    @rule()
    def strangers_leave(self) -> None:
        for switch in self.world.switches.values():
            if not switch.up:
                for circuit in switch.foreign:
                    switch.disconnect(circuit)
                switch.foreign.clear()

    def held_by(self, name: Device) -> Counter[int]:
        """How many of its circuits or rules a device has, for each live reservation."""
        device = self.world.device(name)
        if not isinstance(device, FakeSwitch):
            return Counter(reservation for _, reservation in device.rules.values())
        return Counter(
            r.id for r in self.core.reservations for c in {c for x in r.layouts for c in x.circuits} if c in device.held
        )

    def heard(self, event: DeviceEvent) -> None:
        if isinstance(event, DeviceUp):
            self.unheard[event.device] -= 1

    # ----------------------------------------------------------------------------------------- invariants

    @invariant()
    def elements_belong_to_live_reservations(self) -> None:
        if not hasattr(self, "core"):
            return
        expected: dict[str, int] = {}
        for reservation in self.core.reservations:
            for element in reservation.elements:
                assert element not in expected, f"{element} is held twice"
                expected[element] = reservation.id
        assert self.core.ledger.holder == expected
        addresses = [r.group_address for r in self.core.reservations]
        assert len(addresses) == len(set(addresses))
        assert self.core.ledger._addresses == set(addresses)

    @invariant()
    def histories_are_whole(self) -> None:
        if not hasattr(self, "core"):
            return
        for request in self.core.requests.values():
            assert [e.sequence for e in request.events] == list(range(1, len(request.events) + 1))
            ends = [e for e in request.events if e.kind is EventKind.ENDED]
            assert ends == ([request.events[-1]] if request.state.final else [])
            for part in request.parts:
                self.check_part(request, part)

    def check_part(self, request: Request, part: Part) -> None:
        reservation = self.core._reservations.live.get(part.reservation or 0)
        state = reservation.state if reservation else None
        assert (part.state is PartState.ACTIVE) == (state in HELD)
        assert (part.state is PartState.CONFIGURING) == (state is ReservationState.CONFIGURING)
        assert (part.state is PartState.PENDING) == ((request.current.id, part.index) in self.core._pending)
        assert (part.grant is not None and part.lease_end is not None) or part.state is not PartState.ACTIVE
        assert part.state in (*ENDED, PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE)
        if part.state is PartState.PENDING:
            assert str(self.core.reason(request, part)).startswith("Waiting")

    @invariant()
    def devices_hold_nothing_of_the_dead(self) -> None:
        if not hasattr(self, "core"):
            return
        live = self.core._reservations.live
        for tor in self.world.tors.values():
            for key, (outputs, number) in tor.rules.items():
                assert number in live, f"rule {key} of {number} outlives its reservation"
                assert key[2] == live[number].group_address
                allowed = [
                    f.outputs for x in live[number].layouts for f in x.forwards.get(tor.datapath, ()) if f.key == key
                ]
                assert set(outputs) <= {port for some in allowed for port in some}
        for switch in self.world.switches.values():
            ours = {c for r in live.values() for x in r.layouts for c in x.circuits}
            assert switch.held - switch.foreign <= ours

    @invariant()
    def light_and_packets_reach_the_members(self) -> None:
        if hasattr(self, "core"):
            self.check_moment()

    # --------------------------------------------------------------------------------------------- moments

    def check_moment(self) -> None:
        """After every single operation of a device: who stays is served, and nobody else ever is."""
        for reservation in self.core.reservations:
            tree = reservation.layout.tree
            if tree is not None:
                held = {e for e, r in self.core.ledger.holder.items() if r == reservation.id}
                seen = {f"port:{rack}/{port}" for rack, port in self.world.reached(tree.root)}
                assert seen <= held, f"light of {reservation.id} reaches {seen - held}"
            if reservation.state in HELD and not self.is_harmed(reservation):
                self.check_served(reservation)

    def is_harmed(self, reservation: Reservation) -> bool:
        for name in list(self.harmed.get(reservation.id, ())):
            if not self.unheard[name] and not reservation.busy:
                self.harmed[reservation.id].remove(name)
        return bool(self.harmed.get(reservation.id))

    def check_served(self, reservation: Reservation) -> None:
        sender = self.world.fabric.hosts[self.core.requests[reservation.request].current.sender]
        served = self.world.receivers_of(sender, reservation.group_address)
        old = set(reservation.layout.receivers)
        new = set(reservation.layouts[-1].receivers)
        staying = old if reservation.in_force is reservation.layout else old & new
        assert staying <= served, f"{staying - served} lost service"
        assert served <= old | new, f"{served - old - new} are not members"
        if not reservation.busy:
            assert served == old
            tree = reservation.layout.tree
            if tree is not None:
                leaves = {(leaf.port.rack, leaf.port.port) for leaf in tree.leaves}
                root = (tree.root.rack, tree.root.port)
                # A two-way circuit: the root's own receiver sees the light of the other end.
                two_way = root in leaves and not tree.splitters
                assert self.world.reached(tree.root) == leaves - ({root} if two_way else set())
                assert not two_way or self.world.reached(tree.leaves[0].port) == {root}

    def check_publish(self, publish: Publish) -> None:
        """A grant leaves only when the devices hold all of it."""
        if publish.event.grant is None or publish.event.reason is not None:
            return
        part = self.core.requests[publish.request].parts[publish.event.part]
        if part.reservation is None or part.reservation not in self.core._reservations.live:
            return
        reservation = self.core._reservations.live[part.reservation]
        assert reservation.layout.receivers == publish.event.grant.receivers
        if any(self.unheard[d] for d in self.harmed.get(reservation.id, ())):
            return
        if publish.event.kind is EventKind.CHANGED and self.is_harmed(reservation):
            return
        for circuit in reservation.layout.circuits:
            assert circuit in self.world.switches[circuit.switch].held
        for datapath, forwards in reservation.layout.forwards.items():
            for forward in forwards:
                assert self.world.tors[datapath].rules.get(forward.key, ((), 0))[0] == forward.outputs

    # ------------------------------------------------------------------------------------------------ end

    def teardown(self) -> None:
        """When all is given up and every device answers, nothing is left anywhere."""
        if not hasattr(self, "core"):
            return
        self.world.connect_all()
        for key in list(self.core.requests):
            if not self.core.requests[key].state.final:
                self.world.handle(WithdrawAsked(key))
        for _ in range(5):
            self.world.settle()
            self.world.now += self.core.settings.retry_after
            self.world.handle(Tick())
        assert not self.core._reservations.live
        assert self.core.ledger.holder == {}
        assert all(tor.rules == {} for tor in self.world.tors.values())
        assert all(switch.held == switch.foreign for switch in self.world.switches.values())
        self.elements_belong_to_live_reservations()
        self.histories_are_whole()
        self.world.now += 2 * self.core.settings.remember_ended
        self.world.handle(Tick())
        assert not self.core.requests
        assert self.core.next_timer() is None


TestCoreAndDevices = CoreAndDevices.TestCase
TestCoreAndDevices.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
