"""What the network between some hosts carries, and the JSON form of it that `blast trees` reads.

    {"hosts": ["a", "b"], "root": "a", "receivers": ["b"], "links": [["a", "b", 1e9]], "out": {"a": 2e9}, "in": {}}

Rates are bits/s of data that a program can move. The simulator reads such files too (`blast_sim.trees.network_file`),
in any unit, and plans with them; here they are only checked. A test holds that both take and refuse the same files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from blast_client.base_error import WrongArgument

MAX_HOSTS = 1000
MAX_BYTES = 64 << 20
"""A network of a thousand hosts takes less."""
MIN_RATE, MAX_RATE = 1e-9, 1e18

_NEEDED = ("hosts", "root", "receivers", "links")
_OPTIONAL = ("out", "in")


class WrongNetwork(WrongArgument):
    """A network file is wrong; one sentence that names the place."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Rates in bits/s: of the path from one host to another, and of what a host's access link carries each way.

    A link that is not there, or has the rate 0, is dead. A host that is not in `out` or `into` has no limit of its own
    there. `receivers`: those that the root can reach, and that want the data.
    """

    hosts: tuple[str, ...]
    root: str
    receivers: tuple[str, ...]
    links: Mapping[tuple[str, str], float]
    out: Mapping[str, float] = field(default_factory=dict)
    into: Mapping[str, float] = field(default_factory=dict)

    def reachable(self) -> set[str]:
        """The hosts to which data of the root can come, itself among them."""
        onward: dict[str, list[str]] = {}
        for (start, end), rate in self.links.items():
            if min(rate, self.out.get(start, rate), self.into.get(end, rate)) > 0:
                onward.setdefault(start, []).append(end)
        found, fresh = {self.root}, [self.root]
        while fresh:
            news = set(onward.get(fresh.pop(), ())) - found
            found |= news
            fresh += news
        return found

    def to_json(self) -> dict[str, object]:
        """As in a network file."""
        return {
            "hosts": list(self.hosts),
            "root": self.root,
            "receivers": list(self.receivers),
            "links": [[start, end, rate] for (start, end), rate in self.links.items()],
            "out": dict(self.out),
            "in": dict(self.into),
        }


class CapacitySource(Protocol):
    """Somebody who knows what a network carries: an external monitor, for example."""

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Between these hosts. Raises BlastError."""


def read_capacities(data: bytes) -> Capacities:
    """What a network file says. Raises WrongNetwork."""
    top = _table(_parsed(data), "the network")
    if unknown := [key for key in top if key not in (*_NEEDED, *_OPTIONAL)]:
        raise WrongNetwork(f"the network has an unknown key {_shown(unknown[0])}")
    if absent := [key for key in _NEEDED if key not in top]:
        raise WrongNetwork(f"the network has no {absent[0]!r}")
    hosts, root = _names(top["hosts"], "hosts"), _name(top["root"], "root")
    wanted = [host for host in hosts if host != root]
    receivers = wanted if top["receivers"] == "all" else _names(top["receivers"], "receivers")
    links = [_link(entry, place) for place, entry in enumerate(_list(top["links"], "links"), start=1)]
    out, into = (_rates(top.get(key, {}), key) for key in _OPTIONAL)
    found = Capacities(tuple(hosts), root, tuple(receivers), dict(links), out, into)
    _check(found, len(links))
    return found


def _check(found: Capacities, links: int) -> None:
    known = set(found.hosts)
    if len(found.hosts) > MAX_HOSTS:
        raise WrongNetwork(f"there are {len(found.hosts)} hosts, and no more than {MAX_HOSTS} are planned for")
    if len(known) < len(found.hosts) or len(set(found.receivers)) < len(found.receivers) or len(found.links) < links:
        raise WrongNetwork("a host, a receiver or a link is there twice")
    named = {found.root, *found.receivers, *found.out, *found.into, *(end for link in found.links for end in link)}
    if strangers := sorted(named - known):
        raise WrongNetwork(f"{_shown(strangers[0])} is not among the hosts")
    if found.root in found.receivers or not found.receivers:
        raise WrongNetwork("the root is among the receivers" if found.receivers else "there are no receivers")
    if itself := [start for start, end in found.links if start == end]:
        raise WrongNetwork(f"there is a link from {itself[0]!r} to itself")
    if lost := sorted(set(found.receivers) - found.reachable()):
        raise WrongNetwork(f"no data of {found.root!r} can come to {', '.join(lost[:6])}")


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data, parse_constant=_no_number, object_pairs_hook=_without_repetition)
    except WrongNetwork:
        raise
    except (ValueError, RecursionError) as error:
        raise WrongNetwork(f"this is no JSON: {error}") from None


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise WrongNetwork("a key is there twice")
    return table


def _no_number(text: str) -> NoReturn:
    raise WrongNetwork(f"{text} is no finite number")


def _table(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise WrongNetwork(f"{where} must be a table of keys and values, not {_shown(value)}")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise WrongNetwork(f"{where} must be a list, not {_shown(value)}")
    return value


def _names(value: object, where: str) -> list[str]:
    return [_name(name, f"an entry of {where}") for name in _list(value, where)]


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise WrongNetwork(f"{where} must be the name of a host, not {_shown(value)}")
    return value


def _link(value: object, place: int) -> tuple[tuple[str, str], float]:
    where = f"link number {place}"
    entry = _list(value, where)
    if len(entry) != 3:
        raise WrongNetwork(f"{where} must be [from, to, rate], not {_shown(value)}")
    return (_name(entry[0], f"{where}: from"), _name(entry[1], f"{where}: to")), _rate(entry[2], where)


def _rates(value: object, key: str) -> dict[str, float]:
    return {host: _rate(rate, f"the {key} capacity of {_shown(host)}") for host, rate in _table(value, key).items()}


def _rate(value: object, where: str) -> float:
    try:
        rate = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        rate = math.inf
    if not (rate == 0 or MIN_RATE <= rate <= MAX_RATE):
        raise WrongNetwork(f"the rate of {where} must be 0, or from {MIN_RATE:g} to {MAX_RATE:g}: {_shown(value)}")
    return rate


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
