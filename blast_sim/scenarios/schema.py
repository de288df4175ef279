"""The schema of scenario files: units in the key names, unknown keys rejected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from algorithms.scheduling import DEFAULT, POLICIES
from blast_base.settings import Name, Section
from blast_sim.flow.optics import OPENFLOW_SECONDS, SWITCHING_SECONDS, WITHOUT_OPTICAL_SWITCH_SECONDS
from blast_sim.methods import METHODS, PACKET_METHODS
from blast_sim.methods.method import Order
from blast_sim.plugins.loading import Kind, is_plugin, require_plugin

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]

MAX_SITES = 100
"""The exact planner is meant for some ten sites; its programs grow with the square of their number."""


def _one_of(known: Collection[str], kind: Kind | None = None) -> AfterValidator:
    """Return a validator of names: one of these, or a plug-in of this kind, which it loads."""

    def check(text: str) -> str:
        if kind is not None and is_plugin(kind, text):
            require_plugin(kind, text)
        elif text not in known:
            raise ValueError(f"must be one of {', '.join(known)}" + (f", or a {kind} as module:Class" if kind else ""))
        return text

    return AfterValidator(check)


MethodName = Annotated[str, _one_of(METHODS, "method")]
PolicyName = Annotated[str, _one_of(POLICIES, "policy")]


class SitesSection(Section):
    """Sites over a wide area: sending and receiving capacity, and a separate path from each (a row) to every other.

    A path of rate 0 is unusable.
    """

    names: Annotated[tuple[Name, ...], Field(min_length=2, max_length=MAX_SITES)]
    paths_mbps: tuple[tuple[NotNegative, ...], ...]
    out_mbps: tuple[Positive, ...]
    in_mbps: tuple[Positive, ...]


class NetworkSection(Section):
    """The networks to compare, by name: racks on one core switch, which differ in their uplinks, and sites.

    A site counts as a rack of one server.
    """

    racks: Annotated[int, Field(ge=2, le=100_000)] = 120
    servers_per_rack: Annotated[int, Field(ge=1, le=1000)] = 40
    server_gbps: Positive = 10.0
    uplink_gbps: Mapping[str, Positive] = {}
    sites: Mapping[str, SitesSection] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of all these networks."""
        return (*self.uplink_gbps, *self.sites)


class BackgroundSection(Section):
    """Unicast traffic in rounds: every server has peers at rack distances to either side of a moving center."""

    round_seconds: Positive = 1.0
    racks_per_direction: Mapping[str, Annotated[int, Field(ge=0)]] = {"none": 0}


class LightSection(Section):
    """The optical network, its controller, and the options of requests.

    `switch_ports` is the size of an optical switch; among several `switches` racks, in order, and splitters are shared
    evenly, and a tree stays on one. `switching_ms` replaces the known delay of the `switch`. A request without a grant
    after `pending_timeout_s`, or a rejected one, uses `fallback`.
    """

    rate_gbps: Positive = 10.0
    ports_per_rack: Annotated[int, Field(ge=1, le=64)] = 1
    directional: bool = False
    splitters: Annotated[int, Field(ge=0, le=100_000)] = 40
    fan_out: Annotated[int, Field(ge=2, le=1024)] = 4
    max_splitters_per_tree: Annotated[int, Field(ge=0)] | None = None
    switch_ports: Count | None = None
    switches: Count = 1
    switch: Annotated[str, _one_of(SWITCHING_SECONDS)] = "section-vi"
    switching_ms: Positive | None = None
    openflow_ms: Positive = OPENFLOW_SECONDS * 1000
    rpc_ms: NotNegative = 0.0
    keep_warm_ms: NotNegative = 60_000.0
    warm_reserve: Annotated[float, Field(ge=0, le=1)] = 0.5
    optimizer_budget_ms: NotNegative = 0.0
    may_pause: bool = False
    may_split: bool = False
    pending_timeout_s: Positive | None = None
    fallback: Annotated[str, _one_of(PACKET_METHODS)] = "naive"

    @property
    def switching_seconds(self) -> float:
        """From a command to light."""
        return SWITCHING_SECONDS[self.switch] if self.switching_ms is None else self.switching_ms / 1000


class PacketMulticastSection(Section):
    """The separate packet network of IP multicast.

    The paper gives no figure for its set-up. Unless it is set it is Table II without the optical switch, as if the same
    controller set up packet switches; protocols take messages between them and, where one is lost, seconds.
    """

    rate_gbps: Positive = 10.0
    set_up_ms: NotNegative = WITHOUT_OPTICAL_SWITCH_SECONDS * 1000


class HdfsSection(Section):
    """The interpretation of the paper's text on HDFS: see `blast_sim/methods/hdfs.py`."""

    writes: Order = "sequential"
    third_replica: Literal["group", "cluster"] = "group"
    reads: Order = "parallel"


class OverlaySection(Section):
    """The interpretation of the paper's text on the overlay: whether swarms in racks wait for that between racks."""

    stages: Order = "sequential"


class RackFabricSection(Section):
    """The fabric inside racks: its class of service."""

    lossless: bool = False


class MulticastsSection(Section):
    """Multicasts between whole racks, from the first server of the first one.

    `size_spread` is the sigma of lognormal sizes whose median is `megabytes`; without `arrivals_per_second` all begin
    together. Deadlines are multiples of the transfer time at the optical rate. Racks, in order, are shared evenly among
    `pods`, and the racks of a group are of one pod: with a pod for each optical switch every group can be granted.
    """

    groups: Count
    racks_per_group: Annotated[tuple[Count, Count], Field()] | Count = 3
    disjoint: bool = True
    pods: Count = 1
    megabytes: Positive = 300.0
    size_spread: Annotated[float, Field(ge=0, le=5)] = 0.0
    arrivals_per_second: Positive | None = None
    tenants: Count = 1
    deadline_factor: Positive | None = None

    @property
    def rack_range(self) -> tuple[int, int]:
        """The least and the most racks of a group."""
        racks = self.racks_per_group
        return (racks, racks) if isinstance(racks, int) else racks


class JobSection(Section):
    """Iterative jobs of one kind, each on racks of its own choosing: multicast, compute, shuffle, aggregate, again.

    `compute_spread` is the share by which computations differ, evenly to both sides. Every worker sends `shuffle_mb`
    in all to `shuffle_peers` others; `aggregation_mb` is what the master gets from all workers together.
    """

    name: Name
    count: Count
    racks: Count = 3
    iterations: Count
    megabytes: Positive
    compute_s: Positive
    compute_spread: Annotated[float, Field(ge=0, lt=1)] = 0.1
    shuffle_mb: NotNegative = 0.0
    shuffle_peers: Count = 4
    aggregation_mb: NotNegative = 0.0


class RunSection(Section):
    """Which combinations to run: every method on every network, with every background (and policy, if optical)."""

    methods: Annotated[tuple[MethodName, ...], Field(min_length=1)]
    networks: Annotated[tuple[str, ...], Field(min_length=1)]
    backgrounds: Annotated[tuple[str, ...], Field(min_length=1)]
    policies: Annotated[tuple[PolicyName, ...], Field(min_length=1)] = (DEFAULT,)


class Scenario(Section):
    """The whole file. `columns` are those of the results that are printed."""

    title: str
    columns: tuple[str, ...] = ()
    network: NetworkSection
    background: BackgroundSection = BackgroundSection()
    light: LightSection = LightSection()
    packet_multicast: PacketMulticastSection = PacketMulticastSection()
    hdfs: HdfsSection = HdfsSection()
    overlay: OverlaySection = OverlaySection()
    rack_fabric: RackFabricSection = RackFabricSection()
    multicasts: MulticastsSection | None = None
    jobs: tuple[JobSection, ...] = ()
    run: Annotated[tuple[RunSection, ...], Field(min_length=1)]
