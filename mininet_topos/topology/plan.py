"""The plan of a lab: pure data, built elsewhere.

A plan is deterministic: names, addresses, OpenFlow port numbers, datapath ids and optical ports follow from its
parameters alone. Standard library only, because `mn --custom` loads it with the system's own Python.

Numbering of OpenFlow ports: a rack's base is 0, or 100 (rack - 1) where racks share a datapath; base + n is host n,
base + 90 the uplink to the packet core, base + 90 + n optical port n. Optical port n of rack r is a duplex port of
the optical switch, number (r - 1) b + n; the splitters follow, each on as many duplex ports as it has outputs, its
input sharing the first (the "packed" counting of 280 ports for the paper's scenario). Static trees hang on no optical
switch (`static_tree.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from mininet_topos.kernel.errors import PlanError
from mininet_topos.topology.optical_fabric import EmulatedSplitter
from mininet_topos.topology.static_tree import StaticTreePlan, static_tree_plans

SUBNET_BITS = 16
REAL_RATE_MBPS = 10_000.0
"""The optical port rate that the lab stands for: 10 Gbit/s, as in the paper."""
OPTICAL_SWITCH = "ocs1"

_PORTS_PER_RACK = 100
"""Port numbers of racks that share a datapath: hosts from 1 on, the uplink 90, optical ports above."""
_UPLINK = 90
_LARGEST_SPLITTER = 64


@dataclass(frozen=True)
class HostPlan:
    """A host: its number in its rack, the OpenFlow port it hangs on, and its addresses."""

    name: str
    number: int
    port: int
    ip: str
    mac: str


@dataclass(frozen=True)
class OpticalPortPlan:
    """An optical port of a rack: its number in the rack, OpenFlow port, and duplex port `ocs` on the optical switch."""

    number: int
    port: int
    ocs: int


@dataclass(frozen=True)
class RackPlan:
    """A rack: its number from 1, the datapath id of its (possibly shared) ToR, hosts, uplink and optical ports.

    The numbers of its OpenFlow ports are above `base`.
    """

    name: str
    number: int
    datapath: int
    base: int
    uplink_port: int
    hosts: tuple[HostPlan, ...]
    optical_ports: tuple[OpticalPortPlan, ...]


@dataclass(frozen=True)
class LabPlan:
    """The parameters of a lab; raises `PlanError` for values that cannot be built. Rates are in Mbit/s.

    `splitters` maps fan-out to count; `oversubscription` divides a rack's uplink: hosts * access rate / it;
    `shared_datapath` puts all racks on one bridge, as the paper's testbed does; `mtu` is in bytes. `loop_leaf`
    configures the controller for racks that send only while their own receiver is lit, so that each tree needs a leaf
    back to its root. `static_trees` names the ends of each static tree, the root first.
    """

    racks: int = 8
    hosts_per_rack: int = 2
    optical_ports_per_rack: int = 1
    splitters: Mapping[int, int] = field(default_factory=lambda: {4: 2})
    light_rate_mbps: float = 100.0
    access_rate_mbps: float = 100.0
    oversubscription: float = 1.0
    shared_datapath: bool = False
    mtu: int = 9000
    loop_leaf: bool = False
    static_trees: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        _within("racks", self.racks, 2, 32)
        _within("hosts_per_rack", self.hosts_per_rack, 1, 80)
        _within("optical_ports_per_rack", self.optical_ports_per_rack, 1, 2)
        _within("light_rate_mbps", self.light_rate_mbps, 0.1, REAL_RATE_MBPS)
        _within("access_rate_mbps", self.access_rate_mbps, 0.1, REAL_RATE_MBPS)
        _within("oversubscription", self.oversubscription, 0.1, 1000)
        _within("mtu", self.mtu, 1280, 9000)
        for fan_out, count in self.splitters.items():
            _within("a splitter's ways", fan_out, 2, _LARGEST_SPLITTER)
            _within(f"the number of 1:{fan_out} splitters", count, 0, 64)
        static_tree_plans(self.static_trees, self.racks, self.hosts_per_rack)

    @property
    def rate_factor(self) -> float:
        """Return the factor k of 1:k: real rate over emulated rate.

        Bytes are scaled by the same factor, durations are real.
        """
        return REAL_RATE_MBPS / self.light_rate_mbps

    @property
    def uplink_rate_mbps(self) -> float:
        """The rate of a rack's link to the packet core."""
        return self.hosts_per_rack * self.access_rate_mbps / self.oversubscription

    @cached_property
    def rack_plans(self) -> tuple[RackPlan, ...]:
        """Every rack, in order."""
        return tuple(self._rack(number) for number in range(1, self.racks + 1))

    @cached_property
    def splitter_plans(self) -> tuple[EmulatedSplitter, ...]:
        """Every splitter with the optical switch's ports it is wired to, narrow ones first."""
        sizes = [fan_out for fan_out, count in sorted(self.splitters.items()) for _ in range(count)]
        plans, first = [], self.racks * self.optical_ports_per_rack + 1
        for number, fan_out in enumerate(sizes, start=1):
            plans.append(EmulatedSplitter(f"s{number}", first, tuple(range(first, first + fan_out))))
            first += fan_out
        return tuple(plans)

    @cached_property
    def static_tree_plans(self) -> tuple[StaticTreePlan, ...]:
        """Every static tree."""
        return static_tree_plans(self.static_trees, self.racks, self.hosts_per_rack)

    @property
    def ocs_ports(self) -> int:
        """The number of duplex ports of the optical switch."""
        return self.racks * self.optical_ports_per_rack + sum(w * n for w, n in self.splitters.items())

    @cached_property
    def datapaths(self) -> Mapping[int, tuple[RackPlan, ...]]:
        """Datapath id → the racks on it."""
        ids = dict.fromkeys(rack.datapath for rack in self.rack_plans)
        return {i: tuple(rack for rack in self.rack_plans if rack.datapath == i) for i in ids}

    @property
    def size(self) -> str:
        """In few words: 4 racks of 2."""
        return f"{self.racks} racks of {self.hosts_per_rack}"

    @property
    def summary(self) -> str:
        """One line for people: sizes and the scaling factors, which belong to every figure taken in the lab."""
        splitters = ", ".join(f"{count} x 1:{fan_out}" for fan_out, count in sorted(self.splitters.items()) if count)
        static = "".join(f"static tree {tree.summary}; " for tree in self.static_tree_plans)
        return (
            f"{self.size}, {self.optical_ports_per_rack} optical port(s) each, "
            f"splitters {splitters or 'none'}, {self.ocs_ports}-port optical switch; {static}"
            f"rate and size 1:{self.rate_factor:g} of 10 Gbit/s, time 1:1"
        )

    def _rack(self, number: int) -> RackPlan:
        base = _PORTS_PER_RACK * (number - 1) if self.shared_datapath else 0
        first_ocs = (number - 1) * self.optical_ports_per_rack
        return RackPlan(
            name=f"r{number}",
            number=number,
            datapath=1 if self.shared_datapath else number,
            base=base,
            uplink_port=base + _UPLINK,
            hosts=tuple(_host(number, n, base + n) for n in range(1, self.hosts_per_rack + 1)),
            optical_ports=tuple(
                OpticalPortPlan(n, base + _UPLINK + n, first_ocs + n) for n in range(1, self.optical_ports_per_rack + 1)
            ),
        )


def parse_splitters(text: str) -> dict[int, int]:
    """Parse numbers of splitters: `4x2,8x1` is {4: 2, 8: 1}, two splitters 1:4 and one 1:8.

    Raises `PlanError` for other text.
    """
    sizes: dict[int, int] = {}
    for item in filter(None, text.split(",")):
        fan_out, separator, count = item.partition("x")
        if not (separator and fan_out.isdecimal() and count.isdecimal()):
            raise PlanError(f"{item!r} is no number of splitters: write ways x count, like 4x2,8x1")
        sizes[int(fan_out)] = sizes.get(int(fan_out), 0) + int(count)
    return sizes


def _host(rack: int, number: int, port: int) -> HostPlan:
    return HostPlan(f"r{rack}h{number}", number, port, f"10.0.{rack}.{number}", f"02:b1:a5:00:{rack:02x}:{number:02x}")


def _within(name: str, value: float, minimum: float, maximum: float) -> None:
    if not minimum <= value <= maximum:
        raise PlanError(f"{name} is {value:g}, but a lab can have {minimum:g} to {maximum:g}")


PRESETS: Mapping[str, LabPlan] = {
    "paper-testbed": LabPlan(racks=4, hosts_per_rack=1, splitters={4: 2}, shared_datapath=True),
    "small": LabPlan(racks=8, hosts_per_rack=2, splitters={4: 2}),
    "static": LabPlan(
        racks=4, splitters={4: 1}, static_trees=(("r1", "r2", "r3", "r4h1"), ("r2h2", "r3h2", "r1", "r4"))
    ),
    "wide": LabPlan(racks=32, hosts_per_rack=1, splitters={4: 4, 8: 2, 16: 2}, light_rate_mbps=10.0),
}


def preset(name: str, **changes: object) -> LabPlan:
    """Return the preset called `name` with some parameters changed.

    Raises `PlanError` for an unknown name or bad value.
    """
    if name not in PRESETS:
        raise PlanError(f"there is no preset {name!r}: choose one of {', '.join(PRESETS)}")
    return replace(PRESETS[name], **changes)  # type: ignore[arg-type]
