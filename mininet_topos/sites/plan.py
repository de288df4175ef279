"""The plan of an emulated wide area: pure data, built in `sites.py`.

The model is that of den Burger, Kielmann and Bal, *Balanced Multicasting* (SC 2005), section 2.2: data from one host to
another takes the sender's access link, the path, and the receiver's access link; paths share nothing, and neither do
the two directions of a link. Additions are the elements of section 3.2 (hosts of a cluster have a network of their own,
and clusters share a link) and distance, without which no path needs more than one stream.

All rates are bits per second of application data over TCP, as measured between sites: the links themselves are faster
by the headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from algorithms.balanced.named_network import NamedNetwork
from algorithms.balanced.network import Network
from mininet_topos.kernel.errors import PlanError

MAX_HOSTS = 64
MIN_BPS, MAX_BPS = 100e3, 1e9
"""Slower than a frame in a tenth of a second is dead to TCP; faster is more than the kernel shapes well."""
MAX_ONE_WAY_MS = 1000.0
"""The relay holds all packets on their way in memory."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
"""Hosts have folders and files that are called so, and stand in lists."""

Pair = tuple[str, str]
"""From, to."""


@dataclass(frozen=True)
class SharedLink:
    """A link for all traffic from any of the `senders` to any of the `receivers`."""

    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    rate: float

    @property
    def pairs(self) -> set[Pair]:
        """The pairs that use the link."""
        return {(sender, receiver) for sender in self.senders for receiver in self.receivers}


@dataclass(frozen=True)
class SitesPlan:
    """Hosts, the rate of the path from one to another (a pair that is not there is dead), and their access links.

    Hosts without `out` or `into` have no limit there. Pairs in `local` have a path beside the access links, with this
    rate. Pairs in `far` are `one_way_ms` apart, there and back. Raises `PlanError`.
    """

    hosts: tuple[str, ...]
    rates: Mapping[Pair, float]
    out: Mapping[str, float] = field(default_factory=dict)
    into: Mapping[str, float] = field(default_factory=dict)
    local: Mapping[Pair, float] = field(default_factory=dict)
    shared: tuple[SharedLink, ...] = ()
    far: frozenset[Pair] = frozenset()
    one_way_ms: float = 0.0

    def __post_init__(self) -> None:
        if not 2 <= len(self.hosts) <= MAX_HOSTS:
            raise PlanError(f"sites have 2 to {MAX_HOSTS} hosts, not {len(self.hosts)}")
        _check_known(self)
        for name, rates in _all_rates(self):
            for key, rate in rates.items():
                check_rate(rate, f"{name} {' to '.join(key) if isinstance(key, tuple) else key}")
        if self.far and not 0 < self.one_way_ms <= MAX_ONE_WAY_MS:
            raise PlanError(f"far hosts are up to {MAX_ONE_WAY_MS:g} ms apart, not {self.one_way_ms:g}")
        detours = [pair for link in self.shared for pair in link.pairs] + list(self.far)
        if twice := {pair for pair in detours if detours.count(pair) > 1}:
            raise PlanError(f"{' to '.join(min(twice))} would take two detours: one shared link, or distance")

    @property
    def number(self) -> Mapping[str, int]:
        """Every host's place, from 1."""
        return {host: place for place, host in enumerate(self.hosts, start=1)}

    def rate(self, sender: str, receiver: str) -> float:
        """Return the maximum rate of a single stream, by path and access links."""
        if (sender, receiver) in self.local:
            return self.local[sender, receiver]
        path = self.rates.get((sender, receiver), 0.0)
        return min(path, self.out.get(sender, path), self.into.get(receiver, path))

    def network(self, root: str) -> Network:
        """Return the network in which to plan a multicast from `root` to all others.

        Local networks and shared links are not in it: plan for clusters where there are any. Raises
        InvalidNetworkError.
        """
        links = [(*pair, rate) for pair, rate in self.rates.items()]
        return NamedNetwork(self.hosts, root, links, out=self.out, into=self.into).numbered()

    def scaled(self, factor: float) -> SitesPlan:
        """Return the plan with all rates multiplied, for a machine of lower capacity. Raises `PlanError`."""
        rates, local = ({pair: rate * factor for pair, rate in each.items()} for each in (self.rates, self.local))
        out, into = ({host: rate * factor for host, rate in each.items()} for each in (self.out, self.into))
        shared = tuple(replace(link, rate=link.rate * factor) for link in self.shared)
        return replace(self, rates=rates, out=out, into=into, local=local, shared=shared)


def from_network(network: Network, unit: float = 1.0) -> SitesPlan:
    """Return the sites of a network whose rates count `unit` bits per second.

    Raises `PlanError`.
    """
    hosts, size = network.hosts, range(network.size)
    pairs = permutations(size, 2)
    return SitesPlan(
        hosts,
        {(hosts[i], hosts[j]): float(network.rates[i, j]) * unit for i, j in pairs if network.rates[i, j] > 0},
        _finite({hosts[i]: float(network.out[i]) * unit for i in size}),
        _finite({hosts[i]: float(network.into[i]) * unit for i in size}),
    )


def as_network_file(plan: SitesPlan, root: str, receivers: Sequence[str] = ()) -> dict[str, object]:
    """Return the plan in the format that `blast trees` reads, rates in bits per second.

    Without `receivers` all receive.
    """
    return {
        "hosts": list(plan.hosts),
        "root": root,
        "receivers": list(receivers) or "all",
        "links": [[*pair, rate] for pair, rate in plan.rates.items()],
        "out": dict(plan.out),
        "in": dict(plan.into),
    }


def check_rate(rate: float, name: str) -> None:
    """Raise `PlanError` unless the kernel can shape to this rate (bits per second), or it is 0."""
    if rate and not MIN_BPS <= rate <= MAX_BPS:
        raise PlanError(
            f"{name} is {rate:g} bits per second, but this machine emulates {MIN_BPS:g} to {MAX_BPS:g}, or 0: "
            f"set the unit of the rates, or scale them"
        )


def _finite(capacities: Mapping[str, float]) -> dict[str, float]:
    return {host: capacity for host, capacity in capacities.items() if capacity != float("inf")}


def _all_rates(plan: SitesPlan) -> Iterable[tuple[str, Mapping[Pair, float] | Mapping[str, float]]]:
    yield "the rate from", plan.rates
    yield "the out capacity of", plan.out
    yield "the in capacity of", plan.into
    yield "the local rate from", plan.local
    yield "the rate of the link that is shared by", {", ".join(link.senders): link.rate for link in plan.shared}


def _check_known(plan: SitesPlan) -> None:
    if strange := [host for host in plan.hosts if not _NAME.fullmatch(host)]:
        raise PlanError(
            f"{strange[0][:80]!r} cannot be the name of a host here: take up to 64 letters, digits, '-', '_' and '.'"
        )
    pairs = {*plan.rates, *plan.local, *plan.far, *(pair for link in plan.shared for pair in link.pairs)}
    named = {*plan.out, *plan.into, *(host for pair in pairs for host in pair)}
    if unknown := named - set(plan.hosts):
        raise PlanError(f"{', '.join(sorted(unknown))} is not among the hosts")
    if len(set(plan.hosts)) < len(plan.hosts):
        raise PlanError("a host is there twice")
    if selfish := [sender for sender, receiver in pairs if sender == receiver]:
        raise PlanError(f"a path leads from {selfish[0]} to itself: leave it out")
