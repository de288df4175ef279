"""Emulated sites, up while a `with` block runs.

    with Sites(gridlab()) as sites:
        sites.popen("berlin", ["iperf3", "--server"])

Every host is a network namespace with one interface, `eth0`. All are connected to one bridge in a separate
namespace, whose addresses are static, so that there is no ARP and no flooding. The path from a host to another is a
class of the sender's transmitter; a receiver's access link is the bridge's transmitter to it (`shaping.py`). Frames for
a shared or distant path are redirected before the bridge to another device: a pair of interfaces with the link's rate,
or a relay with a delay. Both pass them to the bridge at their other end.

`cleanup.down(sites.id)` removes all sites even if their process has died: they are a lab.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.names import MARK
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.kernel.netdev import batch, require_commands, require_root, run, silence_ipv6, veth_pair
from mininet_topos.kernel.process import LabProcess
from mininet_topos.lab import cleanup, registry
from mininet_topos.sites.holder import held_namespace
from mininet_topos.sites.plan import Pair, SitesPlan, check_rate
from mininet_topos.sites.shaping import MTU, ShapedPeer, access_link, changed, shared_link

INTERFACE = "eth0"
_NETWORK = "10.79.0.0/16"
_BRIDGE, _FAR = "core", "far"
_RELAY_SECONDS = 30.0
"""A Python process starts, on a busy machine."""


class Sites:
    """A plan, built. Raises `HostError` where this machine lacks something."""

    def __init__(self, plan: SitesPlan) -> None:
        self.plan = plan
        self._undo = ExitStack()

    def __enter__(self) -> Sites:
        require_root()
        require_commands("ip", "tc", "bridge", "ethtool", "mnexec")
        with ExitStack() as undo:
            self._names = registry.claim()
            undo.callback(cleanup.down, self.id)
            self._middle = undo.enter_context(held_namespace(self.environment))
            self._pids = {host: undo.enter_context(held_namespace(self.environment)) for host in self.hosts}
            self._lay_links()
            self._lay_detours(undo)
            for host in self.hosts:
                self._bring_up(host)
            self._shape()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    @property
    def id(self) -> str:
        """The mark of all its processes and interfaces."""
        return self._names.lab

    @property
    def directory(self) -> Path:
        """For state and logs; it goes with the sites."""
        return registry.directory(self.id)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Their names."""
        return self.plan.hosts

    @property
    def environment(self) -> dict[str, str]:
        """For processes of these sites."""
        return {**os.environ, MARK: self.id}

    def address(self, host: str) -> str:
        """Return the address of a host.

        Raises KeyError.
        """
        return f"10.79.0.{self.plan.number[host]}"

    def pid(self, host: str) -> int:
        """Return the id of the process that holds a host's network namespace.

        Raises KeyError.
        """
        return self._pids[host]

    def on(self, host: str, command: Sequence[str]) -> list[str]:
        """Return the command that runs `command` on a host, in the same process.

        Raises KeyError.
        """
        return ["mnexec", "-a", str(self.pid(host)), *command]

    def popen(self, host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command on a host, with options of `subprocess.Popen`; it is ended with the sites at the latest."""
        return subprocess.Popen(self.on(host, command), **{"env": self.environment, **options})

    def set_rate(self, sender: str, receiver: str, rate: float) -> None:
        """Set the rate of the path from one host to another, in bits per second; 0: a dead path.

        Raises `PlanError` for an impossible rate, a path to itself or an unknown receiver, KeyError for an unknown
        sender.
        """
        check_rate(rate, f"the rate from {sender} to {receiver}")
        if sender == receiver:
            raise PlanError(f"there is no path from {sender} to itself")
        pair, pid = (sender, receiver), self.pid(sender)
        if pair in self.plan.local:
            self.plan = replace(self.plan, local={**self.plan.local, pair: rate})
        else:
            self.plan = replace(self.plan, rates={**self.plan.rates, pair: rate})
        batch("tc", changed(INTERFACE, self._peer(receiver, *pair)), pid)

    def received_bytes(self, host: str) -> int:
        """Return the bytes received by a host since it was built, with all headers."""
        return self._counted(host, 0)

    def sent_bytes(self, host: str) -> int:
        """Return the bytes sent by a host since it was built, with all headers."""
        return self._counted(host, 8)

    def _counted(self, host: str, column: int) -> int:
        # A process's view of its namespace, which can be had without going there (proc(5)).
        lines = Path(f"/proc/{self.pid(host)}/net/dev").read_text().splitlines()
        figures = next(line.partition(":")[2] for line in lines if line.strip().startswith(f"{INTERFACE}:"))
        return int(figures.split()[column])

    def _lay_links(self) -> None:
        middle = f"netns {self._middle}"
        batch("ip", [self._link(host, middle) for host in self.hosts])
        lines = [f"link add name {_BRIDGE} type bridge mcast_snooping 0", f"link set {_BRIDGE} up"]
        run_in_network_of(self._middle, _silence)
        batch("ip", [*lines, *(line for host in self.hosts for line in _plugged(self._port(host)))], self._middle)
        known = [f"fdb replace {self._mac(host)} dev {self._port(host)} master static" for host in self.hosts]
        batch("bridge", known, self._middle)

    def _link(self, host: str, middle: str) -> str:
        here = f"netns {self.pid(host)} address {self._mac(host)}"
        return veth_pair(INTERFACE, self._port(host), MTU, here, middle)

    def _bring_up(self, host: str) -> None:
        pid = self.pid(host)
        run_in_network_of(pid, _silence)
        if self.plan.far:
            run_in_network_of(pid, _without_window_scaling)
        # The kernel allows only the machine's owner to choose another congestion control for a whole namespace.
        lines = [
            "link set lo up",
            f"link set {INTERFACE} gso_max_segs 1 up",
            f"address add {self.address(host)}/32 dev {INTERFACE}",
            f"route add {_NETWORK} dev {INTERFACE} src {self.address(host)} congctl cubic",
        ]
        others = [other for other in self.hosts if other != host]
        lines += [
            f"neigh replace {self.address(other)} lladdr {self._mac(other)} dev {INTERFACE} nud permanent"
            for other in others
        ]
        batch("ip", lines, pid)
        run(["ethtool", "-K", INTERFACE, "tso", "off", "gso", "off"], namespace_pid=pid)

    def _shape(self) -> None:
        for host in self.hosts:
            others = [other for other in self.hosts if other != host]
            peers = [self._peer(other, host, other) for other in others]
            batch("tc", access_link(INTERFACE, self.plan.out.get(host), "dst", peers), self.pid(host))
        batch("tc", [line for host in self.hosts for line in self._arriving(host)], self._middle)

    def _arriving(self, host: str) -> list[str]:
        capacity = self.plan.into.get(host)
        if capacity is None:
            return []
        local = self.plan.local
        sources = [
            ShapedPeer(number, self.address(other), local.get((other, host), capacity), (other, host) in local)
            for other, number in self.plan.number.items()
            if other != host
        ]
        return access_link(self._port(host), capacity, "src", sources)

    def _peer(self, host: str, sender: str, receiver: str) -> ShapedPeer:
        rate, local = self.plan.rate(sender, receiver), (sender, receiver) in self.plan.local
        return ShapedPeer(self.plan.number[host], self.address(host), rate, local)

    def _lay_detours(self, undo: ExitStack) -> None:
        entrances: dict[Pair, str] = {}
        for number, link in enumerate(self.plan.shared):
            entrance, out = f"wide{number}", f"wide{number}o"
            batch("ip", [veth_pair(entrance, out, MTU), f"link set {entrance} up", *_plugged(out)], self._middle)
            batch("tc", shared_link(entrance, link.rate), self._middle)
            entrances |= dict.fromkeys(link.pairs, entrance)
        if self.plan.far:
            self._start_relay(undo)
            entrances |= dict.fromkeys(self._far_pairs(), _FAR)
        lines = [f"qdisc add dev {self._port(host)} ingress" for host in {sender for sender, _ in entrances}]
        lines += [
            f"filter add dev {self._port(sender)} parent ffff: protocol ip prio 1 "
            f"u32 match ip dst {self.address(receiver)}/32 action mirred egress redirect dev {device}"
            for (sender, receiver), device in entrances.items()
        ]
        batch("tc", lines, self._middle)

    def _start_relay(self, undo: ExitStack) -> None:
        program = [sys.executable, "-m", "mininet_topos.sites.delay_relay", _FAR, f"{self.plan.one_way_ms:g}"]
        command = ["mnexec", "-a", str(self._middle), *program]
        relay = LabProcess("delay relay", command, self.id, self.directory / "delay-relay.log")
        undo.callback(relay.stop)
        relay.wait_ready(_RELAY_SECONDS)
        batch("ip", list(_plugged(_FAR)), self._middle)

    def _far_pairs(self) -> Iterator[tuple[str, str]]:
        for sender, receiver in self.plan.far:
            yield sender, receiver
            yield receiver, sender

    def _port(self, host: str) -> str:
        """Return the bridge's end of a host's link."""
        return f"site{self.plan.number[host]}"

    def _mac(self, host: str) -> str:
        return f"02:b1:a5:00:00:{self.plan.number[host]:02x}"


def _plugged(device: str) -> Iterator[str]:
    """Plug a device into a bridge port without learning and without flooding of other hosts' frames."""
    yield f"link set {device} master {_BRIDGE}"
    yield f"link set {device} type bridge_slave learning off flood off mcast_flood off bcast_flood off"
    yield f"link set {device} up"


def _silence() -> None:
    for interface in ("all", "default"):
        silence_ipv6(interface)


def _without_window_scaling() -> None:
    """Disable TCP window scaling (RFC 7323), so that a connection has at most 64 KiB in flight."""
    Path("/proc/sys/net/ipv4/tcp_window_scaling").write_text("0")
