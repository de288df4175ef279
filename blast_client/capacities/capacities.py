"""Capacities of the network between hosts, and the JSON form that `blast trees` reads.

    {"hosts": ["a", "b"], "root": "a", "receivers": ["b"], "links": [["a", "b", 1e9]], "out": {"a": 2e9}, "in": {}}

Rates are bits/s of application data. The simulator reads such files, too (`blast_sim.trees.network_file`), in any
unit; this module only validates them. A test verifies that both accept the same files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from blast_client.api.base_error import InvalidArgumentError

MAX_HOSTS = 1000
MAX_BYTES = 64 << 20
"""Maximum size of a network file; a network of a thousand hosts is smaller."""
MIN_RATE, MAX_RATE = 1e-9, 1e18

_NEEDED = ("hosts", "root", "receivers", "links")
_OPTIONAL = ("out", "in")


class InvalidNetworkFileError(InvalidArgumentError):
    """An invalid network file."""


@dataclass(frozen=True, slots=True)
class Capacities:
    """Rates in bits/s of the path from one host to another, and of each direction of a host's access link.

    A link that is missing, or has the rate 0, is dead. A host that is not in `out` or `into` has no limit there. The
    root can reach every one of `receivers`.
    """

    hosts: tuple[str, ...]
    root: str
    receivers: tuple[str, ...]
    links: Mapping[tuple[str, str], float]
    out: Mapping[str, float] = field(default_factory=dict)
    into: Mapping[str, float] = field(default_factory=dict)

    def reachable(self) -> set[str]:
        """Return the hosts that data of the root can reach, including the root."""
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
        """Return the content of a network file."""
        return {
            "hosts": list(self.hosts),
            "root": self.root,
            "receivers": list(self.receivers),
            "links": [[start, end, rate] for (start, end), rate in self.links.items()],
            "out": dict(self.out),
            "in": dict(self.into),
        }


class CapacitySource(Protocol):
    """A source of capacities, for example an external monitor."""

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Return the capacities between the root and the receivers.

        Parameters
        ----------
        root : str
            The host that sends.
        receivers : Sequence[str]
            The hosts that receive.

        Returns
        -------
        Capacities
            Rates of links in bits per second.

        Raises
        ------
        BlastError
            If the source does not answer, or does not know a host.
        """


def read_capacities(data: bytes) -> Capacities:
    """Parse and validate a network file. Raises InvalidNetworkFileError."""
    top = _table(_parsed(data), "the network")
    if unknown := [key for key in top if key not in (*_NEEDED, *_OPTIONAL)]:
        raise InvalidNetworkFileError(f"the network has an unknown key {_shown(unknown[0])}")
    if absent := [key for key in _NEEDED if key not in top]:
        raise InvalidNetworkFileError(f"the network has no {absent[0]!r}")
    hosts, root = _names(top["hosts"], "hosts"), _name(top["root"], "root")
    others = [host for host in hosts if host != root]
    receivers = others if top["receivers"] == "all" else _names(top["receivers"], "receivers")
    links = [_link(entry, place) for place, entry in enumerate(_list(top["links"], "links"), start=1)]
    out, into = (_rates(top.get(key, {}), key) for key in _OPTIONAL)
    found = Capacities(tuple(hosts), root, tuple(receivers), dict(links), out, into)
    _check(found, len(links))
    return found


def _check(found: Capacities, links: int) -> None:
    known = set(found.hosts)
    if len(found.hosts) > MAX_HOSTS:
        raise InvalidNetworkFileError(f"the network has {len(found.hosts)} hosts; the maximum is {MAX_HOSTS}")
    if len(known) < len(found.hosts) or len(set(found.receivers)) < len(found.receivers) or len(found.links) < links:
        raise InvalidNetworkFileError("a host, a receiver or a link occurs twice")
    named = {found.root, *found.receivers, *found.out, *found.into, *(end for link in found.links for end in link)}
    if unknown := sorted(named - known):
        raise InvalidNetworkFileError(f"{_shown(unknown[0])} is not among the hosts")
    if found.root in found.receivers or not found.receivers:
        raise InvalidNetworkFileError(
            "the root is among the receivers" if found.receivers else "there are no receivers"
        )
    if itself := [start for start, end in found.links if start == end]:
        raise InvalidNetworkFileError(f"there is a link from {itself[0]!r} to itself")
    if lost := sorted(set(found.receivers) - found.reachable()):
        raise InvalidNetworkFileError(f"no data of {found.root!r} can reach {', '.join(lost[:6])}")


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data, parse_constant=_no_number, object_pairs_hook=_without_repetition)
    except InvalidNetworkFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidNetworkFileError(f"invalid JSON: {error}") from None


def _without_repetition(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise InvalidNetworkFileError("a key occurs twice")
    return table


def _no_number(text: str) -> NoReturn:
    raise InvalidNetworkFileError(f"{text} is not a finite number")


def _table(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidNetworkFileError(f"{where} must be a table of keys and values, not {_shown(value)}")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidNetworkFileError(f"{where} must be a list, not {_shown(value)}")
    return value


def _names(value: object, where: str) -> list[str]:
    return [_name(name, f"an entry of {where}") for name in _list(value, where)]


def _name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidNetworkFileError(f"{where} must be the name of a host, not {_shown(value)}")
    return value


def _link(value: object, place: int) -> tuple[tuple[str, str], float]:
    where = f"link number {place}"
    entry = _list(value, where)
    if len(entry) != 3:
        raise InvalidNetworkFileError(f"{where} must be [from, to, rate], not {_shown(value)}")
    return (_name(entry[0], f"{where}: from"), _name(entry[1], f"{where}: to")), _rate(entry[2], where)


def _rates(value: object, key: str) -> dict[str, float]:
    return {host: _rate(rate, f"the {key} capacity of {_shown(host)}") for host, rate in _table(value, key).items()}


def _rate(value: object, where: str) -> float:
    try:
        rate = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        rate = math.inf
    if not (rate == 0 or MIN_RATE <= rate <= MAX_RATE):
        raise InvalidNetworkFileError(
            f"the rate of {where} must be 0, or from {MIN_RATE:g} to {MAX_RATE:g}: {_shown(value)}"
        )
    return rate


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
