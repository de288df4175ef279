"""Network files: the JSON that `blast trees` reads.

    {"hosts": ["a", "b", "c"], "root": "a", "receivers": "all",
     "links": [["a", "b", 10], ["a", "c", 8], ["b", "c", 4]],
     "out": {"a": 10}, "in": {"b": 10, "c": 10}}

`receivers` is "all", or a list; hosts that are neither root nor receivers may pass data on. Links have one direction.
`out`, `in`, and hosts in them, may be left out where there is no limit.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import InvalidNetworkError, Network
from blast_sim.base.json_input import parse_json
from blast_sim.base.wrong_input import InputError, entry_of, list_of, number, shown

MAX_HOSTS = 1000
MAX_BYTES = 64 << 20
MIN_RATE, MAX_RATE = 1e-9, 1e18
"""Range that the solver's tolerances resolve: a change of unit brings any rate into it."""


def read_network(path: Path) -> Network:
    """Read the network in a file. Raises InputError, OSError."""
    with path.open("rb") as file:
        return parse_network(bounded(file))


def bounded(file: IO[bytes]) -> bytes:
    """Read what an open file has left. Raises InputError for more than a network can take, OSError."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES} bytes are no network of {MAX_HOSTS} hosts")
    return data


def parse_network(data: bytes) -> Network:
    """Parse the network in these bytes. Raises InputError."""
    top = entry_of(parse_json(data, "network"), "the network", ("hosts", "root", "receivers", "links"), ("out", "in"))
    hosts = _names(top["hosts"], "hosts")
    if len(hosts) > MAX_HOSTS:
        raise InputError(f"there are {len(hosts)} hosts, but no more than {MAX_HOSTS} are planned for")
    receivers = None if top["receivers"] == "all" else _names(top["receivers"], "receivers")
    links = [_link(entry, place) for place, entry in enumerate(list_of(top["links"], "links"), start=1)]
    out, into = (_capacities(top.get(key, {}), key) for key in ("out", "in"))
    try:
        return NamedNetwork(hosts, _name(top["root"], "root"), links, receivers, out, into).numbered()
    except InvalidNetworkError as error:
        raise InputError(str(error)) from None


def _names(value: object, where: str) -> list[str]:
    return [_name(name, f"entry {place} of {where}") for place, name in enumerate(list_of(value, where), start=1)]


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(f"{where} must be the name of a host, not {shown(value)}")
    return value


def _link(value: object, place: int) -> tuple[str, str, float]:
    where = f"link number {place}"
    entry = list_of(value, where)
    if len(entry) != 3:
        raise InputError(f"{where} must be [from, to, rate], not {shown(value)}")
    start, end = _name(entry[0], f"{where}: from"), _name(entry[1], f"{where}: to")
    return start, end, _rate(entry[2], f"the rate of the link from {start!r} to {end!r}")


def _capacities(value: object, key: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise InputError(f"{key} must be a table of hosts and capacities, not {shown(value)}")
    given: dict[str, object] = value
    return {host: _rate(capacity, f"the {key} capacity of {shown(host)}") for host, capacity in given.items()}


def _rate(value: object, where: str) -> float:
    rate = number(value, where, 0, MAX_RATE)
    if 0 < rate < MIN_RATE:
        raise InputError(f"{where} is {rate:g}; a rate is 0 or at least {MIN_RATE:g}: use another unit")
    return rate
