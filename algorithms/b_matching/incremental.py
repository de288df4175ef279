"""The greedy kept up to date between decisions: each pending group watches one thing that blocks it.

Theory of operation. After every decision no pending group fits. So whatever an event frees, only groups that were
blocked by it can fit now. A blocked group waits at ONE of its blockers, a vertex without a free port or else the
splitters, as a clause of a SAT solver watches literals (Moskewicz et al., DAC 2001). An event wakes who waits at what
it freed, best score first; each is served or goes to wait at another blocker of its own. That is the greedy over all
pending groups, without a look at those that cannot fit. Running groups are dedicated (Blast, section III-C): they are
never moved.

Several optical switches have one of these each: a group that waits at all of them is ended at the others once one
serves it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from itertools import count

from algorithms.b_matching import greedy
from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.greedy import Selection
from algorithms.b_matching.group import Group, members
from algorithms.b_matching.splitter_queue import SplitterQueue, Waiting


class IncrementalGreedy:
    """The pending and the running groups of one optical switch.

    `feasibility` is what is free at the start; it belongs to this object from then on. `allowance` maps limited
    tenants to the splitters that they may still take, -1 where they may have no light at all.
    """

    def __init__(
        self,
        feasibility: Feasibility,
        allowance: Mapping[str, int] | None = None,
        score: Callable[[Group], float] = greedy.score,
    ) -> None:
        self._free = feasibility
        self._allowance = dict(allowance or {})
        self._score = score
        self._arrivals = count()
        self._pending: dict[Hashable, Waiting] = {}
        self._running: dict[Hashable, tuple[Group, Pieces]] = {}
        self._at_vertex: defaultdict[int, list[Waiting]] = defaultdict(list)
        self._at_splitters = SplitterQueue()

    @property
    def pending(self) -> Collection[Group]:
        """The groups without light, in order of arrival."""
        return [group for _, _, group in self._pending.values()]

    @property
    def running(self) -> Mapping[Hashable, tuple[Group, Pieces]]:
        """The groups with light by name, each with its splitters."""
        return self._running

    def decide(self, arrived: Iterable[Group] = (), ended: Iterable[Hashable] = ()) -> Selection:
        """One decision point: release or withdraw what `ended`, then serve what fits of the woken and the `arrived`.

        Best score first, at equal scores who arrived first. Names that are unknown here are passed over, so that an
        end that comes twice does no harm. Raises ValueError for an arrival whose name is pending or running.
        """
        freed, splitters_back = 0, False
        for name in ended:
            # Of a withdrawn group that is all: where it waits it is passed over.
            self._pending.pop(name, None)
            if name in self._running:
                group, pieces = self._running.pop(name)
                freed |= self._give_back(group, pieces)
                splitters_back = splitters_back or bool(pieces)
        return self._serve([*self._woken(freed), *map(self._enter, arrived)], splitters_back)

    def adopt(self, group: Group, pieces: Pieces) -> None:
        """Take over a group that runs already (found at a restart, granted elsewhere), whatever else it disturbs.

        Raises ValueError where its name is pending or running.
        """
        self._refuse_twice(group.name)
        self._take(group, pieces)

    def withhold(self, ports: int = 0, pieces: Pieces = ()) -> None:
        """One port less at each of these vertices, and these splitters less: quarantined, away, or taken by others.

        What runs on them keeps running; the count stays below zero until it ends.
        """
        self._free.take(_elements(ports), pieces)

    def restore(self, ports: int = 0, pieces: Pieces = ()) -> Selection:
        """The reverse of `withhold`, or new elements; then serve what fits."""
        freed = self._free.give_back(_elements(ports), pieces)
        return self._serve(self._woken(freed), bool(pieces))

    def allow(self, tenant: str, splitters: int | None) -> Selection:
        """Let `tenant` take this many splitters more (None: unlimited; -1: no light at all), then serve what fits."""
        if splitters is None:
            self._allowance.pop(tenant, None)
        else:
            self._allowance[tenant] = splitters
        return self._serve([], splitters_back=True)

    def _refuse_twice(self, name: Hashable) -> None:
        if name in self._pending or name in self._running:
            raise ValueError(f"group {name!r} is known already")

    def _enter(self, group: Group) -> Waiting:
        self._refuse_twice(group.name)
        waiting = (-self._score(group), next(self._arrivals), group)
        self._pending[group.name] = waiting
        return waiting

    def _woken(self, freed: int) -> list[Waiting]:
        return [waiting for vertex in members(freed) for waiting in self._at_vertex.pop(vertex, ())]

    def _serve(self, woken: list[Waiting], splitters_back: bool) -> Selection:
        """The greedy over these and, if splitters came back, who waits for them; who does not fit waits on."""
        moving = self._at_splitters.moving(self._enough) if splitters_back else []
        free, pending = self._free, self._pending
        served: Selection = []
        for waiting in heapq.merge(sorted(woken), *moving) if moving else sorted(woken):
            group = waiting[2]
            if pending.get(group.name) is not waiting:
                continue
            if full := free.full & group.ports:
                # Always the highest: waiting spread over the racks measured two to three times slower at p99.
                self._at_vertex[full.bit_length() - 1].append(waiting)
            elif (pieces := self._splitters(group.tenant, group.leaves)) is None:
                self._at_splitters.add(group.tenant if group.tenant in self._allowance else None, waiting)
            else:
                del pending[group.name]
                self._take(group, pieces)
                served.append((group, pieces))
        return served

    def _enough(self, tenant: str | None, leaves: int) -> bool:
        return self._splitters(tenant, leaves) is not None

    def _splitters(self, tenant: str | None, leaves: int) -> Pieces | None:
        """What a tree would take now, within what its tenant may take."""
        pieces = self._free.splitters(leaves)
        if pieces is None or tenant is None or tenant not in self._allowance:
            return pieces
        return pieces if len(pieces) <= self._allowance[tenant] else None

    def _take(self, group: Group, pieces: Pieces) -> None:
        self._free.take(group, pieces)
        self._running[group.name] = (group, pieces)
        if group.tenant in self._allowance:
            self._allowance[group.tenant] -= len(pieces)

    def _give_back(self, group: Group, pieces: Pieces) -> int:
        if group.tenant in self._allowance:
            self._allowance[group.tenant] += len(pieces)
        return self._free.give_back(group, pieces)


def _elements(ports: int) -> Group:
    """Ports as a group that holds them and wants nothing else."""
    return Group(None, ports, racks=0, leaves=0, weight=0.0)
