"""The real state of the devices, read from them, and the state that the controller reports."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from blast_client import Client
from blast_controller.configuration.reading import load
from blast_controller.configuration.switch_access import read_access
from mininet_topos.lab.lab import Lab
from optical_switch.model import Circuit, CircuitState
from optical_switch.session import SwitchSession
from tests.support.waiting import look_until
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

T = TypeVar("T")
OURS = "cookie=0xb1a5000000000000/0xffff000000000000"
_COUNTERS = re.compile(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ")
_COOKIE = re.compile(r"cookie=0xb1a5([0-9a-f]{4})([0-9a-f]{8})")


@dataclass(frozen=True, order=True)
class SteeringRule:
    """One of Blast's rules for a group: its place, its reservation, and its match."""

    bridge: str
    reservation: int
    in_port: int
    group: str


def tl1(lab: Lab, command: str, *circuits: tuple[int, int]) -> None:
    """Connect or disconnect circuits by another TL1 session, as an operator would."""
    host, port = lab.switch_address.split(":")

    async def go() -> None:
        client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
        await client.open()
        try:
            await getattr(client, command)([Circuit(*circuit) for circuit in circuits])
        finally:
            await client.close()

    asyncio.run(go())


def held_circuits(lab: Lab) -> set[tuple[int, int]]:
    """Return the cross-connects that the optical switch lists."""
    readings = _by_session(lab, lambda session: session.read_circuits())
    return {tuple(reading.circuit) for reading in readings if reading.state is not CircuitState.ABSENT}


def powers(lab: Lab) -> dict[tuple[str, int], float]:
    """Return the monitor readings of the optical switch in dBm, by side ("in" or "out") and number."""
    readings = _by_session(lab, lambda session: session.read_powers())
    return {(port.side, port.number): power for port, power in readings}


def _by_session(lab: Lab, ask: Callable[[SwitchSession], Awaitable[T]]) -> T:
    """Ask the optical switch by another session of the controller's driver, as the configuration describes it."""
    (switch,) = load(lab.config).optical_switch

    async def go() -> T:
        session = read_access(switch).new_session()
        await session.open()
        try:
            return await ask(session)
        finally:
            await session.close()

    return asyncio.run(go())


def dump_flows(lab: Lab, datapath: int, match: str = OURS) -> list[str]:
    """Return the rules of a ToR, as Open vSwitch prints them, without counters and ages."""
    dump = ofctl(lab, "dump-flows", datapath, match)
    return sorted(_COUNTERS.sub("", line).strip() for line in dump.splitlines() if "cookie=" in line)


def ofctl(lab: Lab, command: str, datapath: int, *arguments: str) -> str:
    """Run `ovs-ofctl` on a ToR's bridge."""
    words = ["ovs-ofctl", "-O", "OpenFlow13", command, lab.names.bridge(datapath), *arguments]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def held_rules(lab: Lab) -> set[SteeringRule]:
    """Return Blast's rules for groups on all ToRs, without guards, which belong to no reservation."""
    found = set()
    for datapath in lab.plan.datapaths:
        for line in dump_flows(lab, datapath):
            cookie = _COOKIE.search(line)
            in_port, group = re.search(r"in_port=(\w+)", line), re.search(r"nw_dst=([\d.]+)", line)
            if cookie and int(cookie[2], 16):
                assert in_port and group, f"a rule of ours without a port or a group: {line}"
                port = _port_number(lab, datapath, in_port[1])
                found.add(SteeringRule(lab.names.bridge(datapath), int(cookie[2], 16), port, group[1]))
    return found


def guards(lab: Lab) -> dict[int, list[str]]:
    """Return Blast's rules on each ToR that belong to no reservation, of any epoch."""
    found = {}
    for datapath in lab.plan.datapaths:
        lines = dump_flows(lab, datapath, "cookie=0xb1a5000000000000/0xffff0000ffffffff")
        found[datapath] = sorted(_COOKIE.sub("", line) for line in lines)
    return found


def rule_ages(lab: Lab) -> dict[str, float]:
    """Return every rule of Blast with its age in seconds; writing a rule again resets its age."""
    ages = {}
    for datapath in lab.plan.datapaths:
        for line in ofctl(lab, "dump-flows", datapath, OURS).splitlines():
            if (age := re.search(r"duration=([\d.]+)s", line)) is not None:
                ages[f"{datapath} {_COUNTERS.sub('', line).strip()}"] = float(age[1])
    return ages


def expected_circuits(client: Client) -> set[tuple[int, int]]:
    """Return the circuits of the optical switch according to the controller."""
    return {(c.switchInput, c.switchOutput) for tree in client.fabric().lightTrees for c in tree.crossConnects}


def expected_rules(lab: Lab, client: Client) -> set[SteeringRule]:
    """Return the rules of the ToRs according to the controller: one at each end of a group's optical path."""
    racks = {rack.name: rack for rack in lab.plan.rack_plans}
    hosts = {host.name: host for rack in lab.plan.rack_plans for host in rack.hosts}
    found = set()
    fabric = client.fabric()
    ports = {p.switchOutput: (r.name, p.port) for r in fabric.racks for p in r.opticalPorts}
    for tree in fabric.lightTrees:
        root = racks[tree.rootRack]
        sender = hosts[client.status(tree.key).sender]
        found.add(SteeringRule(lab.names.bridge(root.datapath), tree.reservation, sender.port, tree.groupAddress))
        for circuit in tree.crossConnects:
            if circuit.switchOutput in ports:
                rack, port = ports[circuit.switchOutput]
                bridge = lab.names.bridge(racks[rack].datapath)
                found.add(SteeringRule(bridge, tree.reservation, port, tree.groupAddress))
    return found


def assert_converged(lab: Lab, client: Client, foreign: set[tuple[int, int]] = frozenset()) -> None:
    """Wait until the devices hold exactly the required and the foreign state, and the controller is idle."""
    look_until(lambda: _difference(lab, client, foreign), lambda difference: not difference, "devices to converge")
    assert client.reconcile(dry_run=True).commands == []


def _difference(lab: Lab, client: Client, foreign: set[tuple[int, int]]) -> str:
    fabric = client.fabric()
    if away := [d for d in (*fabric.racks, *fabric.opticalSwitches) if not d.connected]:
        return f"away: {[d.name for d in away]}"
    if busy := [tree.state for tree in fabric.lightTrees if tree.state != "lit"]:
        return f"light trees are {busy}"
    circuits, rules = held_circuits(lab) ^ (expected_circuits(client) | foreign), held_rules(lab)
    if circuits:
        return f"circuits that are only held or only expected: {sorted(circuits)}"
    if rules := rules ^ expected_rules(lab, client):
        return f"rules that are only held or only expected: {sorted(rules)}"
    return ""


def _port_number(lab: Lab, datapath: int, name: str) -> int:
    """Open vSwitch prints some ports by the name of their interface."""
    if name.isdecimal():
        return int(name)
    names = lab.names
    ports = {}
    for rack in lab.plan.datapaths[datapath]:
        ports |= {names.access_at_tor(rack.number, h.number): h.port for h in rack.hosts}
        ports |= {names.optical_at_tor(rack.number, p.number): p.port for p in rack.optical_ports}
    return ports[name]
