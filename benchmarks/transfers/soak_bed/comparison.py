"""Journal (SQLite), flow tables (`ovs-ofctl`) and cross-connects (TL1), read independently and compared.

No difference means: every reservation of the journal has exactly its rules on the ToRs and its circuits on the optical
switch, the switches hold nothing else of ours, and requests and reservations refer to each other.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from mininet_topos.kernel.netdev import query
from mininet_topos.topology.plan import LabPlan
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

GROUPS = IPv4Network("239.77.0.0/16")
_MAGIC = 0xB1A5
_COOKIE = re.compile(r"cookie=0x([0-9a-f]+)")
_MATCH = re.compile(r"in_port=(\d+),nw_src=([\d.]+),nw_dst=([\d.]+) ")
_DESTINATION = re.compile(r"nw_dst=([\d./]+)")
_OUTPUT = re.compile(r"output:(\d+)")
_VOLATILE = re.compile(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ")

Circuit = tuple[int, int]
"""Input and output of the optical switch."""


@dataclass(frozen=True, order=True, slots=True)
class Rule:
    """A forwarding rule on a ToR."""

    datapath: int
    reservation: int
    in_port: int
    source: str
    group: str
    outputs: tuple[int, ...]

    def __str__(self) -> str:
        ports = ",".join(map(str, self.outputs))
        return f"{self.source} -> {self.group} from port {self.in_port} to {ports} on datapath {self.datapath}"


@dataclass(slots=True)
class Readings:
    """The states of journal, flow tables and cross-connects."""

    reservations: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Request and state of each reservation of the journal."""
    requests: set[str] = field(default_factory=set)
    served: dict[int, str] = field(default_factory=dict)
    """The request of each active part, by its reservation."""
    rules: set[Rule] = field(default_factory=set)
    """Rules that the journal requires, and circuits."""
    circuits: set[Circuit] = field(default_factory=set)
    held_rules: set[Rule] = field(default_factory=set)
    """Rules that the ToRs have, and circuits of the optical switch."""
    held_circuits: set[Circuit] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    """ToRs without guard rules, and foreign rules that forward a group or have our cookie."""


def read(plan: LabPlan, bridges: Mapping[int, str], journal: Path, tl1: str) -> Readings:
    """Read the three states, which agree only at rest; `bridges` are Open vSwitch's names by datapath.

    Raises sqlite3.Error, HostError, OSError and the errors of the TL1 client.
    """
    readings = Readings()
    for datapath in plan.datapaths:
        command = ["ovs-ofctl", "-O", "OpenFlow13", "--no-names", "dump-flows", bridges[datapath]]
        add_flow_table(readings, datapath, query(command))
    readings.held_circuits |= asyncio.run(_circuits(tl1))
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as connection:
        add_journal(readings, connection.execute("SELECT kind, key, body FROM state ORDER BY first").fetchall())
    return readings


def differences(read: Readings) -> list[str]:
    """Return every difference between the three states, one sentence each."""
    return [*_in_the_journal(read), *_between(read), *read.faults]


def dark(read: Readings) -> list[str]:
    """Return all remaining resources although all trees should be dark, one sentence each."""
    kept = sorted(read.reservations.items())
    return [
        *(f"reservation {number} of {request} is still {state}" for number, (request, state) in kept),
        *(f"the rule {rule} is still there" for rule in sorted(read.held_rules)),
        *(f"the cross-connect {i}-{o} is still there" for i, o in sorted(read.held_circuits)),
    ]


def _in_the_journal(read: Readings) -> Iterator[str]:
    for number, (request, state) in read.reservations.items():
        if state not in ("lit", "idle"):
            yield f"reservation {number} of {request} is {state}, not at rest"
        if request not in read.requests:
            yield f"reservation {number} is for {request}, which the journal does not know"
        if state == "lit" and number not in read.served:
            yield f"reservation {number} is lit, and {request} has no active part with it"
    for number in sorted(read.served.keys() - read.reservations.keys()):
        yield f"{read.served[number]} is active with reservation {number}, which the journal does not have"


def _between(read: Readings) -> Iterator[str]:
    rules, circuits = read.rules, read.circuits
    yield from (f"the journal has the rule {rule}, and the ToR does not" for rule in sorted(rules - read.held_rules))
    yield from (f"the ToR has the rule {rule}, and the journal does not" for rule in sorted(read.held_rules - rules))
    for i, o in sorted(circuits - read.held_circuits):
        yield f"the journal has the cross-connect {i}-{o}, and the optical switch does not"
    for i, o in sorted(read.held_circuits - circuits):
        yield f"the optical switch has the cross-connect {i}-{o}, and the journal does not"


def add_journal(readings: Readings, rows: Iterable[tuple[str, str, str]]) -> None:
    """Add the rows (kind, key, JSON) of the journal's state. Raises KeyError, ValueError."""
    for kind, key, text in rows:
        body = json.loads(text)
        if kind == "reservation":
            number, layout = int(key), body["layout"]
            readings.reservations[number] = ("/".join(body["request"]), body["state"])
            for datapath, forwards in layout["forwards"].items():
                for f in forwards:
                    outputs = tuple(sorted(f["outputs"]))
                    readings.rules.add(Rule(int(datapath), number, f["in_port"], f["source"], f["group"], outputs))
            # Each feed, an input of the switch, goes to a splitter or to the port of a leaf.
            if (tree := layout["tree"]) is not None and tree["static"] is None:
                readings.circuits |= {(splitter["feed"], splitter["input"]) for splitter in tree["splitters"]}
                readings.circuits |= {(leaf["feed"], leaf["output"]) for leaf in tree["leaves"]}
        elif kind == "request":
            readings.requests.add(key)
            readings.served |= {part["reservation"]: key for part in body["parts"] if part["state"] == "active"}


def add_flow_table(readings: Readings, datapath: int, dump: str) -> None:
    """Add the output of `ovs-ofctl --no-names dump-flows`."""
    guards = 0
    for line in map(str.strip, dump.splitlines()):
        found = _COOKIE.search(line)
        if found is None:
            continue
        cookie = int(found[1], 16)
        ours, reservation = cookie >> 48 == _MAGIC, cookie & 0xFFFF_FFFF
        rule = _rule(datapath, reservation, line)
        if ours and not reservation:
            guards += 1
        elif ours and rule is not None:
            readings.held_rules.add(rule)
        elif ours or _steers_a_group(line):
            readings.faults.append(f"datapath {datapath} has a rule that is not ours: {_VOLATILE.sub('', line)}")
    if not guards:
        readings.faults.append(f"datapath {datapath} has no guards")


def _rule(datapath: int, reservation: int, line: str) -> Rule | None:
    found = _MATCH.search(line)
    if found is None:
        return None
    outputs = tuple(sorted(int(port) for port in _OUTPUT.findall(line.partition("actions=")[2])))
    return Rule(datapath, reservation, int(found[1]), found[2], found[3], outputs)


def _steers_a_group(line: str) -> bool:
    found = _DESTINATION.search(line)
    return found is not None and IPv4Address(found[1].partition("/")[0]) in GROUPS


async def _circuits(address: str) -> set[Circuit]:
    host, _, port = address.rpartition(":")
    client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
    await client.open()
    try:
        return {(state.input, state.output) for state in await client.circuits()}
    finally:
        await client.close()
