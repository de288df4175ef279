"""Builders and a fake world for tests of the core: fabrics, a journal in memory, and fake devices.

The oracles here (the hosts that a packet reaches) do not use the core's own bookkeeping.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, wraps
from itertools import groupby
from typing import Any, TypeVar

import pytest

from algorithms.b_matching.budget import StepBudget
from algorithms.scheduling.choosing import choose
from blast_controller.core.controller import Core
from blast_controller.core.model.commands import (
    Announce,
    CircuitChange,
    Command,
    ForwardingChange,
    Optimize,
    Publish,
    ReadDevice,
    SetCircuits,
    SetForwarding,
)
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    CircuitsObserved,
    DeviceConnected,
    DeviceDisconnected,
    DeviceEvent,
    Event,
    ExtendRequested,
    FinishRequested,
    Optimized,
    RequestSubmitted,
    StepConfirmed,
    StepFailed,
    TableObserved,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import CrossConnect, Fabric, Host, OpticalPort, Rack, Splitter, reached_ports
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import Extension, MulticastRequest, Part, Request, RequestKey
from blast_controller.core.model.settings import CoreSettings
from blast_controller.store.memory import MemoryStore
from tests.support.controller.fake_devices import FakeSwitch, FakeTor, SessionCutError, operations

T = TypeVar("T")
LIGHT_RATE = 10e9
TENANT = "default"
MAX_ROUNDS = 300
"""Maximum number of alternating turns of devices and controller without any time passing."""


# ------------------------------------------------------------------------------------------------- builders


def make_fabric(
    racks: int,
    splitters: Sequence[int] = (),
    ports: int = 1,
    hosts: int = 2,
    shared: int = 1,
    switches: int = 1,
) -> Fabric:
    """Return a fabric whose racks r1, r2, … have the hosts r1h1, r1h2, … each.

    Each rack has `ports` optical ports on each switch. `splitters` are the fan-outs of s1, s2, …, dealt to the switches
    in turn; `shared` racks share a datapath.
    """
    names = tuple(f"ocs{n + 1}" for n in range(switches))
    wired: dict[str, Rack] = {}
    people: dict[str, Host] = {}
    for number in range(1, racks + 1):
        name, base = f"r{number}", 100 * ((number - 1) % shared)
        optical = tuple(
            OpticalPort(name, base + 50 + side * ports + n, switch, (number - 1) * ports + n + 1, number * ports - n)
            for side, switch in enumerate(names)
            for n in range(ports)
        )
        wired[name] = Rack(name, (number - 1) // shared + 1, optical)
        for host in range(1, hosts + 1):
            people[f"{name}h{host}"] = Host(f"{name}h{host}", name, base + host, f"10.0.{number}.{host}")
    hung: dict[str, Splitter] = {}
    next_in = dict.fromkeys(names, racks * ports + 1)
    next_out = dict(next_in)
    for number, fan_out in enumerate(splitters):
        switch = names[number % switches]
        outputs = tuple(range(next_in[switch], next_in[switch] + fan_out))
        hung[f"s{number + 1}"] = Splitter(f"s{number + 1}", switch, next_out[switch], outputs)
        next_in[switch] += fan_out
        next_out[switch] += 1
    return Fabric(wired, people, hung, names, LIGHT_RATE)


def by_sides(fabric: Fabric) -> Fabric:
    """Return the fabric with the transmit and receive side of each port as separate ports."""
    racks = {
        name: replace(rack, optical_ports=tuple(side for port in rack.optical_ports for side in port.sides()))
        for name, rack in fabric.racks.items()
    }
    return replace(fabric, racks=racks)


def multicast(
    key: str,
    sender: str,
    receivers: Iterable[str],
    size: int = 10**9,
    pending_timeout: float | None = None,
    max_rate: float | None = None,
) -> MulticastRequest:
    """Return a request of the default tenant."""
    return MulticastRequest(key, TENANT, sender, tuple(receivers), size, max_rate, pending_timeout)


# ------------------------------------------------------------------------------------------------- the world


class World:
    """A core, its journal and its devices.

    Commands wait at the devices until `work`, events wait for the core until `deliver`.

    The world calls `after_operation` after every single cross-connect and rule that a device changes, and `on_call`
    with each call of the core and its answer, unless the core refused the call. `crash_after` is the number of further
    deeds (a commit, a command to a device, a message to a client) before the controller dies.
    """

    def __init__(self, fabric: Fabric, settings: CoreSettings | None = None, core: Core | None = None) -> None:
        self.fabric = fabric
        self.now = 0.0
        self.switches = {name: FakeSwitch(name) for name in fabric.switches}
        self.tors = {rack.datapath: FakeTor(rack.datapath) for rack in fabric.racks.values()}
        self.inbox: deque[Callable[[], None]] = deque()
        self.late: deque[DeviceEvent] = deque()
        self.questions: deque[Optimize] = deque()
        self.published: list[Publish] = []
        self.commands: list[Command] = []
        self.announced: dict[int, object] = {}
        self.running = True
        self.undecided = False
        self.together = False
        self.crash_after: int | None = None
        self.after_operation: Callable[[], None] = lambda: None
        self.on_publish: Callable[[Publish], None] = lambda publish: None
        self.on_command: Callable[[SetCircuits | SetForwarding], None] = lambda command: None
        self.on_delivered: Callable[[DeviceEvent | Optimized], None] = lambda event: None
        self.on_crash: Callable[[], None] = lambda: None
        self.on_call: Callable[[str, tuple, list[Command]], None] = lambda method, arguments, result: None
        self.store = MemoryStore()
        self.epoch = self.store.open().epoch
        self.core = core or Core(fabric, settings or CoreSettings())

    @property
    def devices(self) -> list[Device]:
        return [*self.switches, *self.tors]

    def device(self, name: Device) -> FakeSwitch | FakeTor:
        return self.switches[name] if isinstance(name, str) else self.tors[name]

    @property
    def quiet(self) -> bool:
        """Return True if the core and all devices are idle."""
        busy = self.inbox or self.questions
        return not busy and not any(self.device(name).queue for name in self.devices)

    # -------------------------------------------------------------------------------- events and commands

    def handle(self, event: Event) -> list[Command]:
        """Give the core an event; its commands go to the devices. Raises what the core raises."""
        if not self.running:
            return []
        self._take(event)
        return self.conclude()

    def _take(self, event: Event) -> None:
        self.core.take(event, self.now)
        self.on_call("take", (event, self.now), [])

    def catch_up(self) -> None:
        """Let the core handle every deadline that is over; of very many, some at a time."""
        self.handle(TimePassed())
        while self.running and (due := self.core.next_timer()) is not None and due <= self.now:
            self.handle(TimePassed())

    def conclude(self) -> list[Command]:
        """Let the core decide on all delivered events, and send its commands to the devices."""
        self.undecided = False
        commands = self.core.conclude(self.now)
        self.on_call("conclude", (self.now,), commands)
        return self._carry_out(commands)

    def _carry_out(self, commands: list[Command]) -> list[Command]:
        check_rounds(commands)
        for is_record, deeds in groupby(commands, lambda command: isinstance(command, Record)):
            # Consecutive records are one commit.
            for deed in [tuple(deeds)] if is_record else deeds:
                if self._dies():
                    return []
                self._do_deed(deed)
        self._dies()
        return [c for c in commands if not isinstance(c, Record)]

    def _dies(self) -> bool:
        """Return True if the controller's process ends before its next deed."""
        if self.crash_after is None:
            return False
        self.crash_after -= 1
        if self.crash_after < 0:
            self.crash()
            return True
        return False

    def _do_deed(self, deed: Command | tuple[Command, ...]) -> None:
        if isinstance(deed, SetCircuits | SetForwarding | Publish):
            self.commands.append(deed)
        match deed:
            case tuple():
                self.store.commit(deed, at=0.0)  # type: ignore[arg-type]
            case Publish():
                self.published.append(deed)
                self.on_publish(deed)
            case SetCircuits() | SetForwarding():
                self.on_command(deed)
                self._send(_target(deed), deed)
            case ReadDevice():
                self._send(deed.device, deed)
            case Optimize():
                self.questions.append(deed)
            case Announce():
                self.announced[deed.topic] = deed.content

    def _send(self, name: Device, command: SetCircuits | SetForwarding | ReadDevice) -> None:
        """Queue a command after the device's earlier work. A disconnected device does not answer a reading."""
        if self.device(name).up:
            self.device(name).queue.append(command)
        elif not isinstance(command, ReadDevice):
            self._fail(name, command, "not connected")

    def read(self, name: Device) -> None:
        """Let a device answer what it holds now."""
        device = self.device(name)
        if isinstance(device, FakeSwitch):
            self.post(CircuitsObserved(device.name, device.held))
        else:
            self.post(TableObserved(device.datapath, device.held, device.foreign_rules))

    def crash(self) -> None:
        """Kill the controller's process; devices keep their state, and commands in transit may still arrive."""
        self.running = self.undecided = False
        self.crash_after = None
        self.inbox.clear()
        self.late.clear()
        self.questions.clear()
        for name in self.devices:
            self.device(name).hang_up(self.epoch)
        self.store.close()
        self.on_crash()

    def start(self, now: float | None = None) -> None:
        """Start a new process from the journal, with a steady clock of its own."""
        loaded = self.store.open()
        self.epoch = loaded.epoch
        self.now = self.now if now is None else now
        self.running = True
        self.core = Core(self.fabric, self.core.settings)
        records = [Record(kind, key, body) for kind, rows in loaded.state.items() for key, body in rows.items()]
        commands = self.core.restore(records, self.now)
        self.on_call("restore", (records, self.now), commands)
        self._carry_out(commands)

    def restart(self) -> None:
        """Kill the controller's process and start a new one at once."""
        if self.running:
            self.crash()
        self.start()

    def _fail(self, name: Device, command: SetCircuits | SetForwarding, reason: str) -> None:
        for change in command.changes:
            self.post(StepFailed(name, change.reservation, change.step, reason))

    def post(self, event: DeviceEvent | Optimized) -> None:
        """Queue an event of a device or the optimizer. The core gets it at `deliver`."""
        if not self.running:
            return

        def arrive() -> None:
            if self.together:
                self._take(event)
                self.undecided = True
            else:
                self.handle(event)
            if self.running:
                self.on_delivered(event)

        self.inbox.append(arrive)

    def deliver(self, count: int | None = None) -> None:
        """Deliver the next events to the core (without a count: all, and the events that they cause)."""
        while self.inbox and count != 0:
            self.inbox.popleft()()
            count = None if count is None else count - 1

    def deliver_together(self, count: int) -> None:
        """Deliver the next events before the core decides on those of devices, as if all had arrived at once."""
        self.together = True
        self.deliver(count)
        if self.undecided:
            self.conclude()
        self.together = False

    # ------------------------------------------------------------------------------------------- devices

    def work(
        self, name: Device, denied: Iterable[int] = (), cut_after: int | None = None, reply: str = "in time"
    ) -> None:
        """Let a device do its next command.

        Changes whose position is in `denied` fail with their last operation not done; after `cut_after` operations the
        session ends. The `reply` may be "lost" after the effect (the deadline then fails it), come "late", when it has
        been given up, or come "twice".
        """
        device = self.device(name)
        command = device.queue.popleft()
        if isinstance(command, ReadDevice):
            self.read(name)
            return
        try:
            refusals = self._do(device, command, set(denied), cut_after)
        except SessionCutError:
            device.queue.appendleft(command)
            self.lose(name)
            return
        self._answer(name, command, refusals, reply)

    def _answer(self, name: Device, command: SetCircuits | SetForwarding, refusals: dict[int, str], reply: str) -> None:
        answers = [self._verdict(name, c, refusals.get(position)) for position, c in enumerate(command.changes)]
        if reply in ("lost", "late"):
            self._fail(name, command, "no answer in time")
        else:
            for answer in answers:
                self.post(answer)
        if reply in ("late", "twice"):
            self.late += answers

    def _verdict(self, name: Device, change: CircuitChange | ForwardingChange, refusal: str | None) -> DeviceEvent:
        """Return a device's answer for one reservation's share of an executed command."""
        if refusal:
            return StepFailed(name, change.reservation, change.step, f"denied: {refusal}")
        return StepConfirmed(name, change.reservation, change.step, 0.01)

    def write_late(self, name: Device) -> bool:
        """Deliver a command of an ended session that is still on the wire; return True if the device obeys it."""
        device = self.device(name)
        epoch, command = device.in_flight.popleft()
        if not device.accepts(epoch):
            return False
        assert epoch >= device.fence, f"{name} obeys epoch {epoch} although it belongs to {device.fence}"
        self._do(device, command, set(), None)
        return True

    def _do(
        self,
        device: FakeSwitch | FakeTor,
        command: SetCircuits | SetForwarding,
        denied: set[int],
        cut_after: int | None,
    ) -> dict[int, str]:
        deeds = operations(device, command)
        refusals: dict[int, str] = {}
        last = {position: n for n, (position, _) in enumerate(deeds)}
        done = 0
        for n, (position, operation) in enumerate(deeds):
            change = command.changes[position]
            if isinstance(change, CircuitChange):
                stuck = {command.changes[other].reservation for other in refusals}
                if not stuck.isdisjoint(change.after):
                    refusals[position] = "something is in its way"
                    continue
            if position in denied and last[position] == n:
                refusals[position] = "no reason"
                continue
            if done == cut_after:
                raise SessionCutError
            done += 1
            refusal = operation()
            self.after_operation()
            if refusal:
                refusals[position] = refusal
        return refusals

    def lose(self, name: Device) -> None:
        """End the session of a device, which keeps its state. All outstanding commands fail."""
        device = self.device(name)
        outstanding = [command for command in device.queue if not isinstance(command, ReadDevice)]
        device.hang_up(self.epoch)
        self.post(DeviceDisconnected(name, "connection lost"))
        for command in outstanding:
            self._fail(name, command, "connection lost")

    def come_back(self, name: Device, forgets: Callable[[object], bool] = lambda item: False) -> None:
        """Connect a device (again); `forgets` names the circuits (inputs) or rules (matches) that it has lost."""
        device = self.device(name)
        device.take_over(self.epoch)
        if isinstance(device, FakeSwitch):
            ours = {c.input for c in device.held - device.foreign}
            device.circuits = {i: o for i, o in device.circuits.items() if i not in ours or not forgets(i)}
            self.post(DeviceConnected(name, device.held))
        else:
            device.rules = {key: rule for key, rule in device.rules.items() if not forgets(key)}
            self.post(DeviceConnected(name, rules=device.held))

    def connect_all(self) -> None:
        """Connect every device."""
        for name in self.devices:
            if not self.device(name).up:
                self.come_back(name)
        self.deliver()

    def settle(self) -> None:
        """Let everyone do all that there is to do, which must have an end."""
        for _ in range(MAX_ROUNDS):
            if self.quiet:
                return
            self.deliver()
            for name in self.devices:
                while self.device(name).queue:
                    self.work(name)
            while self.questions:
                self.think()
        raise AssertionError("the controller and its devices keep each other busy for ever")

    def think(self, steps: int = 300) -> None:
        """Let the optimizer answer the question that is out."""
        question = self.questions.popleft()
        chosen = choose(question.contention, StepBudget(steps), random.Random(question.revision))
        self.post(Optimized(question.revision, chosen))

    # ------------------------------------------------------------------------------------------- oracles

    def reached(self, source: OpticalPort) -> set[tuple[str, int]]:
        """Return the (rack, port) pairs that light from `source` reaches over the switches' current circuits."""
        return set(reached_by(self.fabric, frozenset(c for s in self.switches.values() for c in s.held), source))

    def receivers_of(self, sender: Host, group: str) -> set[str]:
        """Return the hosts that a packet from `sender` to `group` reaches with the devices' current state."""
        arrived: set[str] = set()
        rack = self.fabric.racks[sender.rack]
        for port in self._outputs(rack.datapath, sender.port, sender.ip, group):
            arrived |= self._behind(rack.datapath, port)
            arrived |= self.arrived_by(self._beyond(rack.datapath, port), sender, group)
        return arrived

    def arrived_by(self, places: Iterable[tuple[int, int]], sender: Host, group: str) -> set[str]:
        """Return the hosts that get a packet that has arrived at these ports of ToRs."""
        found = ((datapath, self._outputs(datapath, port, sender.ip, group)) for datapath, port in places)
        return {host for datapath, outputs in found for port in outputs for host in self._behind(datapath, port)}

    def _beyond(self, datapath: int, port: int) -> list[tuple[int, int]]:
        """Return the ports of ToRs, as (datapath, port), at which light from a port of a ToR arrives."""
        reached = [place for optical in self._optical(datapath, port) for place in self.reached(optical)]
        return [(self.fabric.racks[rack].datapath, far) for rack, far in reached]

    def _outputs(self, datapath: int, port: int, source: str, group: str) -> tuple[int, ...]:
        return self.tors[datapath].rules.get((port, source, group), ((), 0))[0]

    def _behind(self, datapath: int, port: int) -> set[str]:
        hosts = self.fabric.hosts.values()
        return {h.name for h in hosts if h.port == port and self.fabric.racks[h.rack].datapath == datapath}

    def _optical(self, datapath: int, port: int) -> list[OpticalPort]:
        racks = [rack for rack in self.fabric.racks.values() if rack.datapath == datapath]
        return [p for rack in racks for p in rack.optical_ports if p.port == port and p.input]

    # ------------------------------------------------------------------------------------- short-hands

    def submit(self, request: MulticastRequest) -> Request:
        """Submit and return the core's request."""
        self.handle(RequestSubmitted(request))
        return self.core.request(request.id)

    def granted(self, request: MulticastRequest) -> Part:
        """Submit, let the devices work, and return the part, which must be active."""
        part = self.serve(request).parts[0]
        assert part.grant is not None, part
        return part

    def run(self, event: Event) -> None:
        """Handle an event and let everyone work."""
        self.handle(event)
        self.settle()

    def serve(self, request: MulticastRequest) -> Request:
        """Submit, let everyone work, and return the core's request."""
        self.run(RequestSubmitted(request))
        return self.core.request(request.id)

    def disconnect(self, name: Device) -> None:
        """End the session of a device, and let the core process that."""
        self.lose(name)
        self.deliver()

    def reconnect(self, name: Device, forgets: Callable[[object], bool] = lambda item: False) -> None:
        """End the session of a device and begin another one before the core processes either event."""
        self.lose(name)
        self.come_back(name, forgets)

    def extend(self, key: str, **change: Any) -> list[Command]:
        """Ask for an extension; return the core's commands."""
        return self.handle(ExtendRequested(key_of(key), Extension(**change)))

    def finish(self, key: str, part: int = 0) -> None:
        """Finish a part and let everyone work."""
        self.run(FinishRequested(key_of(key), part))

    def withdraw(self, key: str) -> None:
        """Withdraw a request and let everyone work."""
        self.run(WithdrawRequested(key_of(key)))

    def advance(self, seconds: float) -> None:
        """Let time pass, and everyone work."""
        self.now += seconds
        self.run(TimePassed())

    def advance_to(self, moment: float) -> None:
        """Let the time be `moment`, with every deadline up to then handled when it is due."""
        while (due := self.core.next_timer()) is not None and due <= moment:
            self.now = max(self.now, due)
            self.run(TimePassed())
        self.now = moment

    def recover(self) -> None:
        """Restart the controller, connect every device and let everyone work."""
        self.restart()
        self.connect_all()
        self.settle()

    def state(self, key: str) -> PartState:
        """Return the state of a request."""
        return self.core.request(key_of(key)).state

    def part(self, key: str = "a", index: int = 0) -> Part:
        """Return a part of a request."""
        return self.core.request(key_of(key)).parts[index]

    def reason(self, key: str = "a") -> str | None:
        """Return why the first part of a request is as it is, in words."""
        return self.core.reason(self.core.request(key_of(key)).current, self.part(key), self.now)

    def served(self, key: str = "a") -> set[str]:
        """Return the hosts that the sender's packets to the group arrive at."""
        grant = self.part(key).grant
        assert grant is not None
        sender = self.core.request(key_of(key)).current.sender
        return self.receivers_of(self.fabric.hosts[sender], grant.group_address)

    def kinds(self, key: str) -> list[str]:
        """Return the kinds of all events of a request, in order."""
        return [event.kind.value for event in self.core.request(key_of(key)).events]

    def device_commands(self) -> list[SetCircuits | SetForwarding]:
        """Return all commands that devices have received."""
        return [command for command in self.commands if isinstance(command, SetCircuits | SetForwarding)]


def key_of(key: str) -> RequestKey:
    """Return the id of a request of the default tenant."""
    return (TENANT, key)


def ready_world(fabric: Fabric, settings: CoreSettings | None = None) -> World:
    """Return a world with every device connected and empty."""
    world = World(fabric, settings)
    world.connect_all()
    world.commands.clear()
    return world


def check_rounds(commands: list[Command]) -> None:
    """Check that a device gets a second command only if the first one names one of its reservations."""
    named: dict[Device, set[int]] = {}
    for command in commands:
        if isinstance(command, SetCircuits | SetForwarding):
            numbers = {change.reservation for change in command.changes}
            assert len(numbers) == len(command.changes), f"a reservation is there twice: {command}"
            known = named.setdefault(_target(command), numbers)
            assert known is numbers or known & numbers, f"two commands where one would do: {commands}"


def _target(command: SetCircuits | SetForwarding) -> Device:
    return command.switch if isinstance(command, SetCircuits) else command.datapath


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Cache a function of a fabric, which cannot be hashed, and of other arguments."""
    fabrics: dict[int, Fabric] = {}

    @lru_cache(maxsize=20_000)
    def of_known(known: int, *arguments: Hashable) -> T:
        return function(fabrics[known], *arguments)

    @wraps(function)
    def of(fabric: Fabric, *arguments: Hashable) -> T:
        fabrics[id(fabric)] = fabric  # kept, so that the id stays its own
        return of_known(id(fabric), *arguments)

    return of


@remembered
def reached_by(fabric: Fabric, circuits: frozenset[CrossConnect], source: OpticalPort) -> frozenset[tuple[str, int]]:
    """Return the (rack, port) pairs that light from `source` reaches over these circuits."""
    return frozenset(reached_ports(fabric, circuits, source))


@contextmanager
def rejected(code: str, match: str | None = None) -> Iterator[None]:
    """Expect the core to reject a call with this code, and with a message that matches."""
    with pytest.raises(RejectedError, match=match) as refusal:
        yield
    assert refusal.value.code == code
