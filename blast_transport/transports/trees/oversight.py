"""Detection of lost hosts, broken edges and slow stores in a trees phase. No sockets, no clock.

Theory of operation. Every host reports to the sender several times a second; a report is a heartbeat, too. A lost edge
means that one of its ends is lost, which its control connection or its silence shows, or that both live and the path
between them is broken. A lost host without children affects no other host; a lost host with children, a broken edge, or
a host with a slow store, for which its parents wait, requires a phase with another plan. A host whose edges break in
phase after phase is left out of the trees: it gets its data from the sender, after all others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from blast_transport.links.dialling import SOURCE
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.transports.sight import HostFlow, PhaseMeasurement
from blast_transport.transports.trees.plan import TreesPhase
from blast_transport.transports.trees.protocol.fields import HostReport

_SETTLING_SECONDS = 0.3
"""Time after the loss of an edge in which every live host has reported, and control connections of lost hosts have
ended."""
_QUIET_SECONDS = 1.5
"""Time without a report after which a host that has lost an edge counts as frozen."""
_SIGHT_SECONDS = 0.5
_LONGEST_PAUSE = 0.5
_MAX_BROKEN = 4
"""Maximum broken edges of one host that has others that work."""


@dataclass(slots=True)
class _Suspicion:
    """Suspicion of a lost edge."""

    since: float
    reason: str


@dataclass(slots=True)
class Findings:
    """Findings: lost receivers with the reason, and whether the trees have to be planned again."""

    lost: dict[str, str] = field(default_factory=dict)
    replan: bool = False


class Oversight:
    """Oversight of one phase, from `now` on."""

    def __init__(self, phase: TreesPhase, now: float) -> None:
        self._phase = phase
        self._began = self._seen_at = self._ticked = now
        self._last_report = dict.fromkeys(range(1, len(phase.members)), now)
        self._planned = phase.planned()
        self._flows: dict[tuple[int, int], tuple[float, bool]] = {}
        self._suspected: dict[tuple[int, int], _Suspicion] = {}
        self._lost_hosts: dict[int, str] = {}
        self._broken: dict[tuple[int, int], str] = {}
        # Since when each store is slow, and how each does.
        self._slow: dict[int, float] = {}
        self._paces: dict[int, StorePace] = {}
        self._news = False
        self._found = Findings()

    @property
    def suspects(self) -> bool:
        """Return whether an edge is lost for an unknown cause."""
        return bool(self._suspected)

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """Return the broken edges as (parent, child)."""
        return tuple((self._phase.name(parent), self._phase.name(child)) for parent, child in self._broken)

    def unreliable(self, earlier: frozenset[tuple[str, str]]) -> set[str]:
        """Return hosts to which broken edges are attributed, rather than to the hosts at their other ends.

        None of such a host's edges works, and it had another broken one, or it had `_MAX_BROKEN` in total, `earlier`
        phases included. Otherwise one host that accepts no connection would cause new plans without end.
        """
        broken = earlier | frozenset(self.broken)
        planned = [(self._phase.name(parent), self._phase.name(child)) for parent, child in self._planned]
        counts = Counter(host for edge in broken for host in edge if host != SOURCE)
        return {
            host
            for host, count in counts.items()
            if count >= _MAX_BROKEN or (count > 1 and all(edge in broken for edge in planned if host in edge))
        }

    def word(self, place: int, word: HostReport, now: float) -> None:
        """Handle a report of the host at this place."""
        if place:
            self._last_report[place] = now
        for child, rate, held_back in word.flows:
            if (place, child) in self._planned:
                self._flows[place, child] = rate, held_back
        for parent, child, reason in word.lost:
            # Only the ends of an edge may report on it.
            if place in (parent, child) and (parent, child) in self._planned and (parent, child) not in self._broken:
                self._suspected.setdefault((parent, child), _Suspicion(now, reason))
        self._store(place, word, now)

    def receiver_lost(self, name: str, reason: str) -> None:
        """Handle the session's loss of this receiver."""
        for place in range(1, len(self._phase.members)):
            if self._phase.name(place) == name and place not in self._lost_hosts:
                self._lose(place, reason)

    def tick(self, now: float) -> Findings:
        """Return the findings since the last call; call it several times a second."""
        if (stopped := now - self._ticked - _LONGEST_PAUSE) > 0:
            # This process was stopped, and may not have read the reports of others.
            self._last_report = {place: last_report + stopped for place, last_report in self._last_report.items()}
        self._ticked = now
        for edge in list(self._suspected):
            self._judge(edge, now)
        for place, since in list(self._slow.items()):
            others = [pace for other, pace in self._paces.items() if other != place and other not in self._lost_hosts]
            better = any(pace is not StorePace.SLOW for pace in others)
            if now >= since + self._phase.timings.slow and better and place not in self._lost_hosts:
                self._accuse(place, "its store takes less than half of what comes")
                self._found.replan = True
        found, self._found = self._found, Findings()
        return found

    def sight(self, now: float) -> PhaseMeasurement | None:
        """Return the state of the phase, if a report is due."""
        if not self._news and now < self._seen_at + _SIGHT_SECONDS:
            return None
        self._news, self._seen_at = False, now
        flows = tuple(
            HostFlow(self._phase.name(parent), self._phase.name(child), rate, planned, held_back)
            for (parent, child), planned in self._planned.items()
            for rate, held_back in [self._flows.get((parent, child), (0.0, False))]
        )
        lost = tuple(self._phase.name(place) for place in self._lost_hosts)
        return PhaseMeasurement(now - self._began, flows, lost, self.broken)

    def _judge(self, edge: tuple[int, int], now: float) -> None:
        suspicion = self._suspected[edge]
        if any(place in self._lost_hosts for place in edge):
            del self._suspected[edge]
            return
        if now < suspicion.since + _SETTLING_SECONDS:
            return
        silent = [place for place in edge if place and now >= self._last_report[place] + _QUIET_SECONDS]
        for place in silent:
            self._accuse(place, f"no message for {now - self._last_report[place]:.1f} s, and {suspicion.reason}")
        if silent or all(place == 0 or self._last_report[place] > suspicion.since for place in edge):
            del self._suspected[edge]
            if not silent:
                self._broken[edge] = suspicion.reason
                self._news = self._found.replan = True

    def _accuse(self, place: int, reason: str) -> None:
        """Report a loss that the session has not noticed yet."""
        self._found.lost[self._phase.name(place)] = reason
        self._lose(place, reason)

    def _lose(self, place: int, reason: str) -> None:
        self._lost_hosts[place] = reason
        self._news = True
        if any(tree.children(place) for tree in self._phase.trees):
            self._found.replan = True

    def _store(self, place: int, word: HostReport, now: float) -> None:
        pace = StorePace(word.store)
        self._paces[place] = pace
        if pace is StorePace.SLOW:
            self._slow.setdefault(place, now)
        else:
            self._slow.pop(place, None)
        alone = len(self._phase.members) - len(self._lost_hosts) <= 2
        if word.writing >= self._phase.timings.slow and not alone and place not in self._lost_hosts:
            self._accuse(place, f"its store has accepted nothing for {self._phase.timings.slow:g} s")
            self._found.replan = True
