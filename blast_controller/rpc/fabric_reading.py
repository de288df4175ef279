"""The answer of `fabric`: the fabric at a snapshot, rebuilt only where it changed since the last answer.

Monitoring clients call it many times a second: with 1,000 racks each complete answer would take some milliseconds of
the processor that also decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from blast_api import ttypes
from blast_controller.core.model.fabric import Fabric, OpticalPort, Rack, Splitter
from blast_controller.core.model.identifiers import static_element
from blast_controller.core.snapshot.facts import TreeFacts, WarmFacts
from blast_controller.core.snapshot.snapshot import Snapshot

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class AnswerFreshness(NamedTuple):
    """The maximum age of the data in milliseconds (None: current), and the latest entry of a shared journal."""

    stale_ms: int | None = None
    sequence: int | None = None


AS_IT_IS = AnswerFreshness()


class FabricReading:
    """The answers for one snapshot after the other, in any thread. A struct that was given out is never changed."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fabric: Fabric | None = None
        self._racks: _Kept[str, ttypes.RackStatus]
        self._splitters: _Kept[str, ttypes.SplitterStatus]
        self._trees: _Kept[int, ttypes.LightTreeStatus]

    def read(
        self,
        snapshot: Snapshot,
        tenant: str | None,
        warnings: Sequence[str] = (),
        freshness: AnswerFreshness = AS_IT_IS,
    ) -> ttypes.FabricStatus:
        """Return racks, splitters, switches, light trees and pending requests.

        Trees and requests are those of `tenant` (None: all tenants).
        """
        with self._lock:
            self._renew(snapshot)
            racks, splitters, trees = self._racks.answers, self._splitters.answers, self._trees.answers
        away = snapshot.away
        return ttypes.FabricStatus(
            racks=list(racks.values()),
            splitters=list(splitters.values()),
            opticalSwitches=[
                ttypes.OpticalSwitchStatus(name, name not in away, away.get(name)) for name in snapshot.fabric.switches
            ],
            lightTrees=[
                trees[number] for number in sorted(trees) if tenant in (None, snapshot.trees[number].request[0])
            ],
            opticalRateBitsPerSecond=int(snapshot.fabric.light_rate),
            pendingParts=snapshot.waiting_of(tenant),
            warnings=list(warnings) or None,
            warm=_warm(snapshot.warm) if tenant is None and snapshot.warm is not None else None,
            staticTrees=_static_trees(snapshot) or None,
            staleMs=freshness.stale_ms,
            journalSequence=freshness.sequence,
        )

    def _renew(self, snapshot: Snapshot) -> None:
        fabric, standings, away = snapshot.fabric, snapshot.standings, snapshot.away
        if fabric is not self._fabric:
            self._fabric, self._racks, self._splitters, self._trees = fabric, _Kept(), _Kept(), _Kept()
        self._racks.renew(
            (standings, away),
            lambda: ((name, (standings.get(name), rack.datapath in away)) for name, rack in fabric.racks.items()),
            lambda name: _rack(snapshot, fabric.racks[name]),
        )
        self._splitters.renew(
            (standings,),
            lambda: ((name, standings.get(splitter.element)) for name, splitter in fabric.splitters.items()),
            lambda name: _splitter(snapshot, fabric.splitters[name]),
        )
        self._trees.renew((snapshot.trees,), snapshot.trees.items, lambda number: _tree(snapshot.trees[number]))


class _Kept(Generic[Key, Answer]):
    """Cached answers by object, valid while the facts about the object are unchanged."""

    def __init__(self) -> None:
        self.answers: dict[Key, Answer] = {}
        self._facts: dict[Key, object] = {}
        self._sources: tuple[object, ...] = ()

    def renew(
        self,
        sources: tuple[object, ...],
        facts: Callable[[], Iterable[tuple[Key, object]]],
        make: Callable[[Key], Answer],
    ) -> None:
        """Rebuild the answers of objects with changed facts; nothing changed if the `sources` are the same."""
        if len(sources) == len(self._sources) and all(map(_is, sources, self._sources)):
            return
        before, self._sources, self._facts = self._facts, sources, dict(facts())
        # Concurrent readers keep the previous dictionary.
        self.answers = {
            key: self.answers[key] if key in before and before[key] == found else make(key)
            for key, found in self._facts.items()
        }


def _is(one: object, other: object) -> bool:
    return one is other


def _rack(snapshot: Snapshot, rack: Rack) -> ttypes.RackStatus:
    hosts = snapshot.fabric.hosts_by_rack[rack.name]
    limited = {host.name: round(host.access_rate) for host in hosts if host.access_rate is not None}
    return ttypes.RackStatus(
        name=rack.name,
        datapath=f"{rack.datapath:016x}",
        connected=rack.datapath not in snapshot.away,
        opticalPorts=[_port(snapshot, port) for port in rack.optical_ports],
        hosts=[host.name for host in hosts],
        accessBitsPerSecond=limited or None,
        uplinkBitsPerSecond=None if rack.uplink_rate is None else round(rack.uplink_rate),
        addresses={host.name: host.ip for host in hosts},
    )


def _port(snapshot: Snapshot, port: OpticalPort) -> ttypes.OpticalPortStatus:
    return ttypes.OpticalPortStatus(port.port, port.switch, port.input, port.output, *snapshot.standing(port.element))


def _splitter(snapshot: Snapshot, s: Splitter) -> ttypes.SplitterStatus:
    standing = snapshot.standing(s.element)
    return ttypes.SplitterStatus(s.name, s.fan_out, s.switch, s.input, list(s.outputs), *standing)


def _tree(facts: TreeFacts) -> ttypes.LightTreeStatus:
    tree = facts.layout.tree
    return ttypes.LightTreeStatus(
        reservation=facts.reservation,
        key=facts.request[1],
        part=facts.part,
        state=facts.state.value,
        groupAddress=facts.group_address,
        rootRack=facts.root,
        leafRacks=[leaf.port.rack for leaf in tree.leaves] if tree else [],
        splitters=[hung.splitter.name for hung in tree.splitters] if tree else [],
        crossConnects=[ttypes.CrossConnectStatus(c.switch, c.input, c.output) for c in facts.layout.circuits],
    )


def _warm(facts: WarmFacts) -> ttypes.WarmStatus:
    reserves = [facts.reserves[place] for place in sorted(facts.reserves)]
    return ttypes.WarmStatus(
        trees=facts.trees,
        resources=[ttypes.IdleResources(s.switch, s.fan_out or None, s.dark, s.lit, s.reserve) for s in reserves],
        opticalGrants=facts.counts.lit,
        warmHits=facts.counts.hits,
        evicted=facts.counts.gave_way,
        reclaimed=facts.counts.taken_over,
    )


def _static_trees(snapshot: Snapshot) -> list[ttypes.StaticTreeStatus]:
    found = []
    for tree in snapshot.fabric.static_trees.values():
        ends = [*tree.leaf_ports, *sorted(tree.leaf_hosts)]
        standing = snapshot.standing(static_element(tree.name))
        found.append(ttypes.StaticTreeStatus(tree.name, tree.root_rack or tree.root_host or "", ends, *standing))
    return found
