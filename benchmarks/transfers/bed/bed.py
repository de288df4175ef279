"""A sender and receivers in network namespaces, joined by a packet network and an optical network.

Host 0 sends, hosts 1..N receive. Each has `eth0` (10.77.0.<host + 1>) on the packet network, which is a kernel bridge,
or one for each rack and one between them; and `light` (10.78.0.<host + 1>) on the project's emulated optics: the fiber
of host 0 goes through the optical switch into one splitter 1:N, whose outputs go through the switch to the receivers.
The processes that hold the namespaces have the mark of a lab, so that `blast lab down` finds them after a crash.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.set_up import SetUp
from benchmarks.transfers.bed.failures import PrerequisiteError
from benchmarks.transfers.bed.programs import HERE
from benchmarks.transfers.bed.shape import MTU, UNSHAPED, Shape
from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.names import MARK
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.kernel.netdev import batch, query, require_commands, require_root, silence_ipv6, veth_pair
from mininet_topos.lab import cleanup, registry
from mininet_topos.sites.holder import held_namespace
from mininet_topos.topology.optical_fabric import EmulatedSplitter, OpticalFabric

PACKETS = "eth0"
LIGHT = "light"
SENDER = 0
_WIDEST_SPLITTER = 127
_MAX_RECEIVERS = 253
"""With the sender, the addresses of a /24."""
_FORWARDING, _DISABLED = 3, 0
"""States of a bridge's port (bridge(8))."""
_FAR = "far"
"""The device of the relay that adds distance."""


@dataclass(frozen=True)
class Plan:
    """A bed: `receivers` hosts beside the sender, in `racks` (of host numbers) or on one network.

    Racks are joined by links of the shape `uplinks`. Raises PlanError.
    """

    receivers: int
    shape: Shape = UNSHAPED
    racks: tuple[tuple[int, ...], ...] = ()
    uplinks: Shape = UNSHAPED
    light: bool = True

    def __post_init__(self) -> None:
        limit, cause = (_WIDEST_SPLITTER, "the splitter") if self.light else (_MAX_RECEIVERS, "the addresses")
        if not 1 <= self.receivers <= limit:
            raise PlanError(f"a bed has 1 to {limit} receivers because of {cause}, not {self.receivers}")
        if self.racks and sorted(host for rack in self.racks for host in rack) != list(self.hosts):
            raise PlanError("every host must be in exactly one rack")

    @property
    def hosts(self) -> range:
        """All hosts."""
        return range(self.receivers + 1)


@dataclass(frozen=True)
class Switch:
    """The optical switch: ports 1..`ports` in the namespace of the process `namespace`; host h is at port h + 1."""

    namespace: int
    ports: int
    splitter: EmulatedSplitter


class Bed(SetUp):
    """A built plan; it is removed on exit. Raises HostError."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def _set_up(self, undo: ExitStack) -> None:
        require_root()
        require_commands("ip", "tc", "bridge", "mnexec")
        self._names = registry.claim()
        undo.callback(cleanup.down, self._names.lab)
        self._middle = undo.enter_context(held_namespace(self.environment))
        run_in_network_of(self._middle, _quiet_and_trusting)
        self._pids = [undo.enter_context(held_namespace(self.environment)) for _ in self.plan.hosts]
        self._lay_packets()
        if self.plan.light:
            self._lay_light()
        for host in self.plan.hosts:
            self._bring_up(host)
        if self.plan.light:
            self.grant_light()

    @property
    def lab(self) -> str:
        """The id in the mark of all processes."""
        return self._names.lab

    @property
    def environment(self) -> dict[str, str]:
        """The environment for processes of this bed."""
        return {**os.environ, MARK: self.lab}

    def packet_address(self, host: int) -> str:
        """Return its address on the packet network."""
        return f"10.77.0.{host + 1}"

    def optical_address(self, host: int) -> str:
        """Return its address on the optical network."""
        return f"10.78.0.{host + 1}"

    def pid(self, host: int) -> int:
        """Return the process that holds the namespace of a host."""
        return self._pids[host]

    def on(self, host: int, command: Sequence[str]) -> list[str]:
        """Return the command that becomes `command` on a host."""
        return ["mnexec", "-a", str(self.pid(host)), *command]

    def grant_light(self) -> None:
        """Connect host 0 to the splitter."""
        self._fabric.apply([], [(1, self.switch.splitter.input)])

    def cut(self, hosts: Collection[int]) -> None:
        """Drop all frames between these hosts and the packet network; neither side is notified."""
        self._set_ports(hosts, _DISABLED)

    def mend(self, hosts: Collection[int]) -> None:
        """Undo `cut`."""
        self._set_ports(hosts, _FORWARDING)

    def shape_uplink(self, rack: int, shape: Shape) -> None:
        """Change the rate and the queue of a rack's link to the core while packets pass it."""
        batch("tc", shape.lines(f"uplink{rack}"), self._middle)

    def _set_ports(self, hosts: Collection[int], state: int) -> None:
        # The bridge keeps its table, so that it does not flood frames for a host that was cut off.
        batch("bridge", [f"link set dev packet{host} state {state}" for host in hosts], self._middle)

    @property
    def switch(self) -> Switch:
        """The optical switch, for a controller that takes the place of `grant_light`."""
        feed = len(self.plan.hosts) + 1
        outputs = tuple(range(feed + 1, feed + 1 + self.plan.receivers))
        return Switch(self._middle, outputs[-1], EmulatedSplitter("s1", feed, outputs))

    def received_bytes(self, host: int) -> int:
        """Return the bytes that a host has received, with all headers, since the bed was built."""
        return self._counted(host, 0)

    def sent_bytes(self, host: int) -> int:
        """Return the bytes that a host has sent over the optical and the packet network."""
        return self._counted(host, 8)

    def _counted(self, host: int, column: int) -> int:
        # A column of /proc/net/dev of the namespace, as its process sees it (proc(5)).
        lines = Path(f"/proc/{self.pid(host)}/net/dev").read_text().splitlines()
        counters = {name.strip(): figures.split() for name, _, figures in (line.partition(":") for line in lines)}
        return sum(int(counters[interface][column]) for interface in (PACKETS, LIGHT) if interface in counters)

    def core_bytes(self) -> list[tuple[int, int]]:
        """Return for each rack the bytes that its link to the core has carried up and down."""
        links = {link["ifname"]: link["stats64"] for link in json.loads(query(_STATISTICS, "", self._middle))}
        return [
            (links[f"core{rack}"]["rx"]["bytes"], links[f"core{rack}"]["tx"]["bytes"])
            for rack in range(len(self.plan.racks))
        ]

    def _lay_packets(self) -> None:
        middle = f"netns {self._middle}"
        racks = self.plan.racks or (tuple(self.plan.hosts),)
        bridges, uplinks = [f"rack{number}" for number in range(len(racks))], []
        pairs = [
            veth_pair(PACKETS, f"packet{host}", MTU, f"netns {self.pid(host)}", middle) for host in self.plan.hosts
        ]
        batch("ip", pairs)
        lines = [f"link add name {bridge} type bridge mcast_snooping 0" for bridge in bridges]
        lines += [f"link set packet{host} master rack{rack}" for rack, hosts in enumerate(racks) for host in hosts]
        ports = [f"packet{host}" for host in self.plan.hosts]
        if self.plan.racks:
            lines.append("link add name core type bridge mcast_snooping 0")
            for rack, bridge in enumerate(bridges):
                lines.append(veth_pair(f"uplink{rack}", f"core{rack}", MTU))
                lines += [f"link set uplink{rack} master {bridge}", f"link set core{rack} master core"]
                uplinks += [f"uplink{rack}", f"core{rack}"]
            bridges.append("core")
        batch("ip", [*lines, *(f"link set {port} up" for port in (*ports, *uplinks, *bridges))], self._middle)
        shaped = [line for port in ports for line in self.plan.shape.lines(port)]
        shaped += [line for port in uplinks for line in self.plan.uplinks.lines(port)]
        batch("tc", shaped, self._middle)

    def _lay_light(self) -> None:
        """Connect the ports of the switch: host h at h + 1, then the input of the splitter, then its outputs."""
        splitter = self.switch.splitter
        feed, outputs = splitter.input, splitter.outputs
        middle, names = f"netns {self._middle}", self._names
        fibers = [
            veth_pair(LIGHT, names.ocs_port(host + 1), MTU, f"netns {self.pid(host)}", middle)
            for host in self.plan.hosts
        ]
        glass = [veth_pair(names.ocs_port(n), names.splitter_side(n), MTU, middle, middle) for n in (feed, *outputs)]
        batch("ip", [*fibers, *glass])
        ends = [names.ocs_port(n) for n in range(1, outputs[-1] + 1)]
        ends += [names.splitter_side(n) for n in (feed, *outputs)]
        batch("ip", [f"link set {end} up" for end in ends], self._middle)
        self._fabric = OpticalFabric(names, outputs[-1], [splitter], lambda lines: batch("tc", lines, self._middle))
        self._fabric.prepare()
        self._fabric.apply([], [(output, host + 1) for output, host in zip(outputs, self.plan.hosts[1:], strict=True)])
        to_receivers = [names.ocs_port(host + 1) for host in self.plan.hosts[1:]]
        batch("tc", [line for port in to_receivers for line in self.plan.shape.lines(port)], self._middle)

    def _bring_up(self, host: int) -> None:
        pid = self.pid(host)
        run_in_network_of(pid, _quiet_and_trusting)
        lines = ["link set lo up", f"link set {PACKETS} up"]
        lines.append(f"address add {self.packet_address(host)}/24 brd + dev {PACKETS}")
        interfaces = [PACKETS]
        if self.plan.light:
            lines += [f"link set {LIGHT} up", f"address add {self.optical_address(host)}/24 dev {LIGHT}"]
            interfaces.append(LIGHT)
        # The peers multicast by packets; ours name their interface.
        lines.append(f"route replace 224.0.0.0/4 dev {PACKETS}")
        batch("ip", lines, pid)
        batch("tc", [line for interface in interfaces for line in self.plan.shape.lines(interface)], pid)


_STATISTICS = ("ip", "-json", "-statistics", "link", "show")


def _quiet_and_trusting() -> None:
    for interface in ("all", "default"):
        silence_ipv6(interface)
        (Path("/proc/sys/net/ipv4/conf") / interface / "rp_filter").write_text("0")


class RelayOrders:
    """Commands to a running `delay_relay.py`, which changes a path while packets pass it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def give(self, command: str) -> tuple[int, int]:
        """Give a command; return the number of frames until now, and of the lost ones. Raises PrerequisiteError."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{command}\n".encode())
        match (answer := self._process.stdout.readline().decode().strip() or "it has ended").split():
            case ["ok", frames, lost]:
                return int(frames), int(lost)
        raise PrerequisiteError(f"the relay did not follow {command!r}: {answer}")


@contextmanager
def apart(bed: Bed, pairs: Iterable[tuple[int, int]], one_way_ms: float) -> Iterator[None]:
    """Delay all packets between these pairs of hosts, in both directions, on a bed without racks.

    Raises PrerequisiteError, HostError.
    """
    with _delayed(bed, "rack0", [way for one, other in pairs for way in ((one, other), (other, one))], one_way_ms):
        yield


@contextmanager
def distant(bed: Bed, round_trip_ms: float) -> Iterator[RelayOrders]:
    """Delay all packets from the receivers, which are in the second rack, to the sender, alone in the first.

    TCP and the multicast transport then have this round trip, and only one kind of packets is delayed. Raises
    PrerequisiteError, HostError.
    """
    with _delayed(bed, "rack1", [(host, SENDER) for host in bed.plan.hosts[1:]], round_trip_ms) as orders:
        yield orders


@contextmanager
def distant_uplink(bed: Bed, round_trip_ms: float) -> Iterator[RelayOrders]:
    """Delay all packets of the sender, alone in the first rack, instead, so that orders to the relay can lose them.

    The relay is behind the queue of the rack's link, so that it gets no more packets than the link carries. Raises
    PrerequisiteError, HostError.
    """
    middle = bed.switch.namespace
    with _relayed(bed, "core", {"core0": ["u32 0 0"]}, round_trip_ms) as orders, ExitStack() as undo:
        # Packets of the relay must not return to the sender: a bridge forwards none between isolated ports.
        undo.callback(batch, "bridge", ["link set dev core0 isolated off"], middle)
        batch("bridge", [f"link set dev {port} isolated on" for port in ("core0", _FAR)], middle)
        yield orders


@contextmanager
def _delayed(
    bed: Bed, bridge: str, directions: Iterable[tuple[int, int]], milliseconds: float
) -> Iterator[RelayOrders]:
    """Delay packets from the first host of each pair to the second; the first hosts are at this bridge."""
    matches: dict[str, list[str]] = {}
    for sender, receiver in directions:
        matches.setdefault(f"packet{sender}", []).append(f"ip dst {bed.packet_address(receiver)}/32")
    with _relayed(bed, bridge, matches, milliseconds) as orders:
        yield orders


@contextmanager
def _relayed(bed: Bed, bridge: str, matches: Mapping[str, Iterable[str]], milliseconds: float) -> Iterator[RelayOrders]:
    """Delay the IPv4 packets that arrive at these ports of a bridge and match.

    Ingress of a port redirects them to one device, which returns them to the bridge later.
    """
    middle = bed.switch.namespace
    command = ["mnexec", "-a", str(middle), sys.executable, str(HERE / "delay_relay.py"), _FAR, str(milliseconds)]
    pipe, environment = subprocess.PIPE, bed.environment
    with (
        subprocess.Popen(command, 0, env=environment, stdin=pipe, stdout=pipe, start_new_session=True) as relay,
        ExitStack() as undo,
    ):
        try:
            assert relay.stdout is not None
            if relay.stdout.readline() != b"ready\n":
                raise PrerequisiteError("the relay that adds distance did not start: it needs /dev/net/tun")
            # The bridge must not learn at that port, which frames of all hosts leave, and must not flood to it.
            plug = f"link set {_FAR} type bridge_slave learning off flood off mcast_flood off bcast_flood off"
            batch("ip", [f"link set {_FAR} master {bridge}", plug, f"link set {_FAR} up"], middle)
            undo.callback(batch, "tc", [f"qdisc del dev {port} ingress" for port in matches], middle)
            lines = [f"qdisc add dev {port} ingress" for port in matches]
            lines += [
                f"filter add dev {port} parent ffff: protocol ip prio 1 u32 match {match} "
                f"action mirred egress redirect dev {_FAR}"
                for port, some in matches.items()
                for match in some
            ]
            batch("tc", lines, middle)
            yield RelayOrders(relay)
        finally:
            relay.terminate()
