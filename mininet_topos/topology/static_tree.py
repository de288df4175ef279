"""Static trees of a lab: a splitter fixed between ToRs and hosts, without an optical switch (Blast, section II-A).

Written as names, the root's first: `("r1", "r2", "r3", "r4h1")` leads from the ToR of r1 to those of r2 and r3 and
directly to the host r4h1. A ToR has a separate OpenFlow port for each tree, its base + 94 + the tree's number. A host
has a second network card. Its frames are treated as if they had arrived by the first one, so that programs join groups
as usual; the host at a root sends groups from the address of that card, 10.1.RACK.NUMBER. Standard library only, as
`plan.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mininet_topos.kernel.errors import PlanError

MAX_TREES = 4
"""Ports 95 to 98 of a rack are for them."""
MAX_LEAVES = 64
_FIRST_PORT = 95
_END = re.compile(r"r([1-9]\d{0,3})(?:h([1-9]\d{0,3}))?")


@dataclass(frozen=True)
class StaticEnd:
    """Where a tree ends: the ToR of rack `rack`, or its host number `host`. `fiber` counts a tree's ends from 0."""

    name: str
    rack: int
    host: int | None
    fiber: int

    @property
    def light_ip(self) -> str:
        """The address of the card of a host at the root."""
        return f"10.1.{self.rack}.{self.host}"


@dataclass(frozen=True)
class StaticTreePlan:
    """A tree by its number from 1; `port` is that of its ToRs, counted from a rack's base."""

    number: int
    root: StaticEnd
    leaves: tuple[StaticEnd, ...]

    @property
    def name(self) -> str:
        """The name in the controller's configuration and at the Mininet prompt."""
        return f"fixed{self.number}"

    @property
    def port(self) -> int:
        """Of every ToR at which it ends, above the rack's base."""
        return _FIRST_PORT + self.number - 1

    @property
    def ends(self) -> tuple[StaticEnd, ...]:
        """The root and the leaves."""
        return (self.root, *self.leaves)

    @property
    def summary(self) -> str:
        """A few words for people."""
        return f"{self.name} from {self.root.name} to {', '.join(end.name for end in self.leaves)}"


def taken_as_from(card: str, other: str) -> list[str]:
    """Return `tc -batch` lines of a host that treat frames of the netdev `card` as if they had arrived by `other`."""
    return [
        f"qdisc add dev {card} handle ffff: ingress",
        f"filter add dev {card} parent ffff: protocol all u32 match u32 0 0 action mirred ingress redirect dev {other}",
    ]


def static_tree_plans(trees: Sequence[Sequence[str]], racks: int, hosts_per_rack: int) -> tuple[StaticTreePlan, ...]:
    """Return the trees of a lab with these numbers of racks and hosts. Raises `PlanError` for invalid ones."""
    if len(trees) > MAX_TREES:
        raise PlanError(f"there are {len(trees)} static trees, but a lab can have 0 to {MAX_TREES}")
    plans = tuple(_plan(number, names, racks, hosts_per_rack) for number, names in enumerate(trees, start=1))
    hosts = [end.name for plan in plans for end in plan.ends if end.host is not None]
    twice = next((name for name in hosts if hosts.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"static trees end at {twice} twice, but a host has one card for them")
    return plans


def _plan(number: int, names: Sequence[str], racks: int, hosts_per_rack: int) -> StaticTreePlan:
    if not 3 <= len(names) <= 1 + MAX_LEAVES:
        raise PlanError(f"a static tree has {len(names)} ends, but needs a root and 2 to {MAX_LEAVES} leaves")
    if len(set(names)) < len(names):
        raise PlanError(f"the static tree {', '.join(names)} ends at one place twice")
    root, *leaves = (_end(name, fiber, racks, hosts_per_rack) for fiber, name in enumerate(names))
    return StaticTreePlan(number, root, tuple(leaves))


def _end(name: str, fiber: int, racks: int, hosts_per_rack: int) -> StaticEnd:
    match = _END.fullmatch(name)
    if match is None:
        raise PlanError(f"{name!r} is no end of a static tree: name a rack or a host, like r1 or r1h2")
    rack, host = int(match[1]), None if match[2] is None else int(match[2])
    if rack > racks or (host or 1) > hosts_per_rack:
        raise PlanError(f"a static tree ends at {name}, but the lab has racks 1 to {racks} of {hosts_per_rack} hosts")
    return StaticEnd(name, rack, host, fiber)
