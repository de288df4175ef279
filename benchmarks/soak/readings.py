"""Journal, flow tables and cross-connects, read where they are: in SQLite, by `ovs-ofctl dump-flows`, by TL1."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from mininet_topos.netdev import query
from mininet_topos.plan import LabPlan
from soak.comparison import Circuit, FlowTable, Journal, Readings, Reservation, Rule
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import DIALECTS

GROUPS = IPv4Network("239.77.0.0/16")
MAGIC = 0xB1A5
ACTIVE = "active"

Row = tuple[str, str, str]
"""Kind, key and body (JSON) of a row of the journal's state."""

_COOKIE = re.compile(r"cookie=0x([0-9a-f]+)")
_MATCH = re.compile(r"in_port=(\d+),nw_src=([\d.]+),nw_dst=([\d.]+) ")
_DESTINATION = re.compile(r"nw_dst=([\d./]+)")
_OUTPUT = re.compile(r"output:(\d+)")
_VOLATILE = re.compile(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ")


def read(plan: LabPlan, bridges: Mapping[int, str], journal: Path, tl1: str) -> Readings:
    """The three, one after the other: they can only agree at rest. `bridges`: Open vSwitch's names by datapath.

    Raises sqlite3.Error, HostError, OSError and the TL1 client's errors.
    """
    flows = {datapath: flow_table(datapath, _dump(bridges[datapath])) for datapath in plan.datapaths}
    circuits = asyncio.run(_circuits(tl1))
    return Readings(journal_of(_rows(journal)), flows, circuits)


def journal_of(rows: Iterable[Row]) -> Journal:
    """What the rows of the state say. Raises KeyError, ValueError for rows of another form."""
    reservations, requests, served = [], set[str](), dict[int, str]()
    for kind, key, text in rows:
        body = json.loads(text)
        if kind == "reservation":
            reservations.append(_reservation(int(key), body))
        elif kind == "request":
            requests.add(key)
            served |= {p["reservation"]: key for p in body["parts"] if p["state"] == ACTIVE}
    return Journal(tuple(reservations), frozenset(requests), served)


def flow_table(datapath: int, dump: str) -> FlowTable:
    """From what `ovs-ofctl --no-names dump-flows` prints."""
    rules, strange, guards = set[Rule](), [], 0
    for line in map(str.strip, dump.splitlines()):
        found = _COOKIE.search(line)
        if found is None:
            continue
        cookie = int(found[1], 16)
        ours, reservation = cookie >> 48 == MAGIC, cookie & 0xFFFF_FFFF
        rule = _rule(datapath, reservation, line)
        if ours and not reservation:
            guards += 1
        elif ours and rule is not None:
            rules.add(rule)
        elif ours or _steers_a_group(line):
            strange.append(_VOLATILE.sub("", line))
    return FlowTable(frozenset(rules), guards, tuple(sorted(strange)))


def _reservation(number: int, body: Mapping[str, Any]) -> Reservation:
    layout = body["layout"]
    rules = frozenset(
        Rule(int(datapath), number, f["in_port"], f["source"], f["group"], tuple(sorted(f["outputs"])))
        for datapath, forwards in layout["forwards"].items()
        for f in forwards
    )
    circuits = frozenset(_tree_circuits(layout["tree"]))
    return Reservation(number, "/".join(body["request"]), body["state"], circuits, rules)


def _tree_circuits(tree: Mapping[str, Any] | None) -> Iterator[Circuit]:
    """Light goes from each feed, an input of the switch, to a splitter or to the port of a leaf."""
    if tree is not None and tree["static"] is None:
        yield from ((splitter["feed"], splitter["input"]) for splitter in tree["splitters"])
        yield from ((leaf["feed"], leaf["output"]) for leaf in tree["leaves"])


def _rule(datapath: int, reservation: int, line: str) -> Rule | None:
    found = _MATCH.search(line)
    if found is None:
        return None
    outputs = tuple(sorted(int(port) for port in _OUTPUT.findall(line.partition("actions=")[2])))
    return Rule(datapath, reservation, int(found[1]), found[2], found[3], outputs)


def _steers_a_group(line: str) -> bool:
    found = _DESTINATION.search(line)
    return found is not None and IPv4Address(found[1].partition("/")[0]) in GROUPS


def _rows(journal: Path) -> Sequence[Row]:
    with closing(sqlite3.connect(f"{journal.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as connection:
        return connection.execute("SELECT kind, key, body FROM state ORDER BY first").fetchall()


def _dump(bridge: str) -> str:
    return query(["ovs-ofctl", "-O", "OpenFlow13", "--no-names", "dump-flows", bridge])


async def _circuits(address: str) -> frozenset[Circuit]:
    host, _, port = address.rpartition(":")
    client = SwitchClient(host, int(port), DIALECTS["glimmerglass"])
    await client.open()
    try:
        return frozenset((state.input, state.output) for state in await client.circuits())
    finally:
        await client.close()
