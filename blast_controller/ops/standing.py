"""Metrics computed on demand: the fabric and the requests at the latest commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.snapshot.facts import WarmFacts
from blast_controller.core.snapshot.snapshot import Snapshot

Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of metrics.

    `epoch` is that of the leader (0: a standby); `store_fault` is the journal's fault and `safe_mode` the reason
    of safe mode, None if there is none; `counts` has the counters of other parts by name, and `levels` values that also
    decrease.
    """

    snapshot: Callable[[], Snapshot]
    epoch: Callable[[], int]
    store_fault: Callable[[], str | None]
    safe_mode: Callable[[], str | None]
    counts: Callable[[], Counts]
    levels: Callable[[], Counts]


class StateCollector(Collector):
    """Collects metrics of the current state."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> Iterable[Metric]:
        """Return nothing: a collection at registration, to check names, would be too early."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all of it."""
        sources, snapshot = self._sources, self._sources.snapshot()
        for name, text, value in (
            ("blast_leader", "Epoch of the leader; 0 on a standby.", sources.epoch()),
            ("blast_journal_writable", "1 if the journal is writable.", sources.store_fault() is None),
            (
                "blast_safe_mode",
                "1 in safe mode, until an operator resumes the controller.",
                sources.safe_mode() is not None,
            ),
        ):
            yield GaugeMetricFamily(name, text, value)
        yield _labeled(
            "blast_requests",
            "Requests by state, including ended ones within their retention.",
            "state",
            _requests(snapshot),
        )
        yield _labeled("blast_waiting_parts", "Pending parts.", "tenant", snapshot.requests.waiting)
        yield _labeled("blast_splitters", "Splitters.", "state", _splitters(snapshot))
        yield GaugeMetricFamily("blast_reservations", "Reservations with state on devices.", len(snapshot.trees))
        yield _labeled("blast_of_dp_status", "1 if the ToR is connected.", "dpid", _tors(snapshot))
        yield _labeled(
            "blast_optical_switch_up",
            "1 if the optical switch is connected.",
            "switch",
            {name: float(name not in snapshot.away) for name in snapshot.fabric.switches},
        )
        if snapshot.warm is not None:
            yield from _warm(snapshot.warm)
        for name, count in sources.counts().items():
            yield CounterMetricFamily(f"blast_{name}", f"Since the start: {name.replace('_', ' ')}.", count)
        for name, level in sources.levels().items():
            yield GaugeMetricFamily(f"blast_{name}", f"Now: {name.replace('_', ' ')}.", level)


def _labeled(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _requests(snapshot: Snapshot) -> Counts:
    found = snapshot.requests.states
    return {state.value: found.get(state, 0) for state in PartState}


def _splitters(snapshot: Snapshot) -> Counts:
    elements = (splitter.element for splitter in snapshot.fabric.splitters.values())
    found = Counter(_state(snapshot, element) for element in elements)
    return {state: found[state] for state in ("free", "held", "probed", "unusable")}


def _state(snapshot: Snapshot, element: ElementId) -> str:
    holder, unusable = snapshot.standing(element)
    if holder is not None:
        return "probed" if holder == PROBER else "held"
    return "unusable" if unusable else "free"


def _tors(snapshot: Snapshot) -> Counts:
    datapaths = {rack.datapath for rack in snapshot.fabric.racks.values()}
    return {f"{datapath:016x}": float(datapath not in snapshot.away) for datapath in sorted(datapaths)}


def _warm(warm: WarmFacts) -> Iterator[Metric]:
    yield GaugeMetricFamily("blast_warm_trees", "Warm trees.", warm.trees)
    counts = warm.counts
    for name, text, value in (
        ("blast_optical_grants", "Parts that received a light tree of an optical switch.", counts.lit),
        ("blast_warm_hits", "Parts that used a warm tree.", counts.hits),
        ("blast_warm_evictions", "Warm trees evicted before their group used them again.", counts.gave_way),
        ("blast_warm_reclaimed", "Warm trees whose resources another group reclaimed.", counts.taken_over),
    ):
        yield CounterMetricFamily(name, text, value)
