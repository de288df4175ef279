"""Builders and a fake world for tests of the core: fabrics, and optical switches and ToRs that are dictionaries.

The fake devices enforce what real ones do: a switch joins an input to one output only, a ToR holds one rule per match,
and each does its commands in order. The oracles here (who gets a packet) know nothing of the core's own bookkeeping.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from blast_controller.core.commands import Command, Publish, SetCircuits, SetForwarding
from blast_controller.core.controller import Core
from blast_controller.core.events import (
    Device,
    DeviceDown,
    DeviceEvent,
    DeviceUp,
    Event,
    RequestSubmitted,
    StepConfirmed,
    StepFailed,
)
from blast_controller.core.fabric import CrossConnect, Fabric, Host, OpticalPort, Rack, Splitter, reached_ports
from blast_controller.core.requests import MulticastRequest, Part, Request, RequestKey
from blast_controller.core.settings import CoreSettings

LIGHT_RATE = 10e9
TENANT = "default"


# ------------------------------------------------------------------------------------------------- builders


def make_fabric(
    racks: int,
    splitters: Sequence[int] = (),
    ports: int = 1,
    hosts: int = 2,
    shared: int = 1,
    switches: int = 1,
) -> Fabric:
    """Racks r1, r2, … with hosts r1h1, r1h2, …; each rack has `ports` optical ports on each switch.

    `splitters` are the ways of s1, s2, …, dealt to the switches in turn; `shared` racks share a datapath.
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
    for number, ways in enumerate(splitters):
        switch = names[number % switches]
        legs = tuple(range(next_in[switch], next_in[switch] + ways))
        hung[f"s{number + 1}"] = Splitter(f"s{number + 1}", switch, next_out[switch], legs)
        next_in[switch] += ways
        next_out[switch] += 1
    return Fabric(wired, people, hung, names, LIGHT_RATE)


def multicast(
    key: str,
    sender: str,
    receivers: Iterable[str],
    size: int = 10**9,
    patience: float | None = None,
    highest_rate: float | None = None,
) -> MulticastRequest:
    """A request of the default tenant."""
    return MulticastRequest(key, TENANT, sender, tuple(receivers), size, highest_rate, patience)


# ------------------------------------------------------------------------------------------------- the world


class Cut(Exception):
    """The session ends in the middle of a command."""


@dataclass
class FakeSwitch:
    """An optical switch: circuits by input, and the commands it has not done yet."""

    name: str
    circuits: dict[int, int] = field(default_factory=dict)
    foreign: set[CrossConnect] = field(default_factory=set)
    queue: deque[SetCircuits] = field(default_factory=deque)
    up: bool = False

    @property
    def held(self) -> frozenset[CrossConnect]:
        return frozenset(CrossConnect(self.name, i, o) for i, o in self.circuits.items())

    def disconnect(self, circuit: CrossConnect) -> None:
        if self.circuits.get(circuit.input) == circuit.output:
            del self.circuits[circuit.input]

    def connect(self, circuit: CrossConnect) -> str | None:
        """A refusal, where the input or the output is in use."""
        if circuit in self.foreign or self.circuits.get(circuit.input) == circuit.output:
            return "already connected"
        rivals = {c for c in self.held if c.input == circuit.input or c.output == circuit.output}
        assert rivals <= self.foreign, f"{circuit} is to be made while our own {rivals - self.foreign} is there"
        if rivals:
            return f"busy with {rivals}"
        self.circuits[circuit.input] = circuit.output
        return None


RuleKey = tuple[int, str, str]


@dataclass
class FakeTor:
    """A ToR: outputs and reservation by match, and the commands it has not done yet."""

    datapath: int
    rules: dict[RuleKey, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    queue: deque[SetForwarding] = field(default_factory=deque)
    up: bool = False


class World:
    """A core and its devices. Commands wait at the devices until `work`, events to the core until `deliver`.

    `after_operation` is called after every single cross-connect and rule that a device changes.
    """

    def __init__(self, fabric: Fabric, settings: CoreSettings | None = None) -> None:
        self.fabric = fabric
        self.core = Core(fabric, settings or CoreSettings())
        self.now = 0.0
        self.switches = {name: FakeSwitch(name) for name in fabric.switches}
        self.tors = {rack.datapath: FakeTor(rack.datapath) for rack in fabric.racks.values()}
        self.inbox: deque[Callable[[], None]] = deque()
        self.published: list[Publish] = []
        self.commands: list[Command] = []
        self.after_operation: Callable[[], None] = lambda: None
        self.on_publish: Callable[[Publish], None] = lambda publish: None
        self.on_delivered: Callable[[DeviceEvent], None] = lambda event: None

    @property
    def devices(self) -> list[Device]:
        return [*self.switches, *self.tors]

    def device(self, name: Device) -> FakeSwitch | FakeTor:
        return self.switches[name] if isinstance(name, str) else self.tors[name]

    # -------------------------------------------------------------------------------- events and commands

    def handle(self, event: Event) -> list[Command]:
        """Give the core an event; its commands go to the devices. Raises what the core raises."""
        commands = self.core.handle(event, self.now)
        targets = [c.switch if isinstance(c, SetCircuits) else c.datapath for c in commands if not _is_publish(c)]
        assert len(targets) == len(set(targets)), f"more than one command for a device: {commands}"
        self.commands += commands
        for command in commands:
            if isinstance(command, Publish):
                self.published.append(command)
                self.on_publish(command)
            else:
                self._send(command)
        return commands

    def _send(self, command: SetCircuits | SetForwarding) -> None:
        steps = [(c.reservation, c.step) for c in command.changes]
        assert len(steps) == len(set(steps)), f"a step is there twice: {command}"
        name = command.switch if isinstance(command, SetCircuits) else command.datapath
        device = self.device(name)
        if device.up:
            device.queue.append(command)  # type: ignore[arg-type]
        else:
            self._fail(name, command, "not connected")

    def _fail(self, name: Device, command: SetCircuits | SetForwarding, reason: str) -> None:
        for change in command.changes:
            self.post(StepFailed(name, change.reservation, change.step, reason))

    def post(self, event: DeviceEvent) -> None:
        """A device tells the core something; it hears of it at `deliver`."""

        def tell() -> None:
            self.handle(event)
            self.on_delivered(event)

        self.inbox.append(tell)

    def deliver(self, count: int | None = None) -> None:
        """Let the core hear of the next events (all of them, and those that they cause, without a count)."""
        while self.inbox and count != 0:
            self.inbox.popleft()()
            count = None if count is None else count - 1

    # ------------------------------------------------------------------------------------------- devices

    def work(self, name: Device, denied: Iterable[int] = (), cut_after: int | None = None) -> None:
        """Let a device do its next command.

        Changes whose position is in `denied` fail with their last operation not done; after `cut_after` operations the
        session ends.
        """
        device = self.device(name)
        command = device.queue.popleft()
        left = cut_after

        def operate(operation: Callable[[], str | None]) -> str | None:
            nonlocal left
            if left == 0:
                raise Cut
            left = None if left is None else left - 1
            refusal = operation()
            self.after_operation()
            return refusal

        try:
            refusals = self._do(device, command, set(denied), operate)
        except Cut:
            device.queue.appendleft(command)  # type: ignore[arg-type]
            self.lose(name)
            return
        for position, change in enumerate(command.changes):
            if refusals.get(position):
                self.post(StepFailed(name, change.reservation, change.step, f"denied: {refusals[position]}"))
            else:
                self.post(StepConfirmed(name, change.reservation, change.step, 0.01))

    def _do(
        self,
        device: FakeSwitch | FakeTor,
        command: SetCircuits | SetForwarding,
        denied: set[int],
        operate: Callable[[Callable[[], str | None]], str | None],
    ) -> dict[int, str]:
        operations = _operations(device, command)
        refusals: dict[int, str] = {}
        last = {position: n for n, (position, _) in enumerate(operations)}
        for n, (position, operation) in enumerate(operations):
            if position in denied and last[position] == n:
                refusals[position] = "no reason"
            elif refusal := operate(operation):
                refusals[position] = refusal
        return refusals

    def lose(self, name: Device) -> None:
        """The session to a device ends; what it holds stays. Everything outstanding fails."""
        device = self.device(name)
        device.up = False
        self.post(DeviceDown(name, "connection lost"))
        while device.queue:
            self._fail(name, device.queue.popleft(), "connection lost")

    def come_back(self, name: Device, forgets: Callable[[object], bool] = lambda item: False) -> None:
        """A device (re)connects; `forgets` says which circuits (inputs) or rules (matches) it has lost."""
        device = self.device(name)
        device.up = True
        if isinstance(device, FakeSwitch):
            ours = {c.input for c in device.held - device.foreign}
            device.circuits = {i: o for i, o in device.circuits.items() if i not in ours or not forgets(i)}
            self.post(DeviceUp(name, device.held))
        else:
            device.rules = {key: rule for key, rule in device.rules.items() if not forgets(key)}
            self.post(DeviceUp(name))

    def connect_all(self) -> None:
        """Bring every device up."""
        for name in self.devices:
            if not self.device(name).up:
                self.come_back(name)
        self.deliver()

    def settle(self) -> None:
        """Let everyone do all that there is to do."""
        while self.inbox or any(self.device(name).queue for name in self.devices):
            self.deliver()
            for name in self.devices:
                while self.device(name).queue:
                    self.work(name)

    # ------------------------------------------------------------------------------------------- oracles

    def reached(self, source: OpticalPort) -> set[tuple[str, int]]:
        """The (rack, port) pairs that see light from `source` with what the switches hold now."""
        return set(_reached(self.fabric, frozenset(c for s in self.switches.values() for c in s.held), source))

    def receivers_of(self, sender: Host, group: str) -> set[str]:
        """The hosts that a packet from `sender` to `group` arrives at, with what devices hold now."""
        arrived: set[str] = set()
        rack = self.fabric.racks[sender.rack]
        for port in self._outputs(rack.datapath, sender.port, sender.ip, group):
            arrived |= self._behind(rack.datapath, port)
            for optical in self._optical(rack.datapath, port):
                for far_rack, far_port in self.reached(optical):
                    far = self.fabric.racks[far_rack].datapath
                    for out in self._outputs(far, far_port, sender.ip, group):
                        arrived |= self._behind(far, out)
        return arrived

    def _outputs(self, datapath: int, port: int, source: str, group: str) -> tuple[int, ...]:
        return self.tors[datapath].rules.get((port, source, group), ((), 0))[0]

    def _behind(self, datapath: int, port: int) -> set[str]:
        hosts = self.fabric.hosts.values()
        return {h.name for h in hosts if h.port == port and self.fabric.racks[h.rack].datapath == datapath}

    def _optical(self, datapath: int, port: int) -> list[OpticalPort]:
        racks = [rack for rack in self.fabric.racks.values() if rack.datapath == datapath]
        return [p for rack in racks for p in rack.optical_ports if p.port == port]

    # ------------------------------------------------------------------------------------- short-hands

    def submit(self, request: MulticastRequest) -> Request:
        """Submit and return the core's request."""
        self.handle(RequestSubmitted(request))
        return self.core.request(request.id)

    def granted(self, request: MulticastRequest) -> Part:
        """Submit, let the devices work, and return the part, which must be active."""
        part = self.submit(request).parts[0]
        self.settle()
        assert part.grant is not None, part
        return part

    def kinds(self, key: str) -> list[str]:
        """The kinds of all events of a request so far."""
        return [event.kind.value for event in self.core.request(key_of(key)).events]


def key_of(key: str) -> RequestKey:
    """The id of a request of the default tenant."""
    return (TENANT, key)


def ready_world(fabric: Fabric, settings: CoreSettings | None = None) -> World:
    """A world with every device connected and nothing on any."""
    world = World(fabric, settings)
    world.connect_all()
    world.commands.clear()
    return world


def _is_publish(command: Command) -> bool:
    return isinstance(command, Publish)


@lru_cache(maxsize=4096)
def _reached_in(fabric_id: int, circuits: frozenset[CrossConnect], source: OpticalPort) -> frozenset[tuple[str, int]]:
    return frozenset(reached_ports(_FABRICS[fabric_id], circuits, source))


_FABRICS: dict[int, Fabric] = {}


def _reached(fabric: Fabric, circuits: frozenset[CrossConnect], source: OpticalPort) -> frozenset[tuple[str, int]]:
    _FABRICS[id(fabric)] = fabric  # kept, so that the id stays its own
    return _reached_in(id(fabric), circuits, source)


_Operations = list[tuple[int, Callable[[], str | None]]]


def _operations(device: FakeSwitch | FakeTor, command: SetCircuits | SetForwarding) -> _Operations:
    """What a device does for a command, as (position of the change, deed).

    A switch gets one delete and one connect for all changes, a ToR the changes one after the other.
    """
    going: _Operations = []
    coming: _Operations = []
    for position, change in enumerate(command.changes):
        if isinstance(device, FakeSwitch):
            going += [(position, _deed(device.disconnect, c)) for c in change.disconnect]
            coming += [(position, _deed(device.connect, c)) for c in change.connect]
        else:
            going += [(position, _deed(device.rules.pop, f.key, None)) for f in change.remove]
            going += [
                (position, _deed(device.rules.__setitem__, f.key, (f.outputs, change.reservation))) for f in change.add
            ]
    return going + coming


def _deed(function: Callable[..., object], *arguments: object) -> Callable[[], str | None]:
    def do() -> str | None:
        result = function(*arguments)
        return result if isinstance(result, str) else None

    return do
