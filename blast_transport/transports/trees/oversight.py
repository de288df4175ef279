"""What becomes of a phase along trees: who is lost, which edges are broken, whose store is slow. No sockets, no clock.

Theory of operation. Every host tells the sender some times a second what it sees: a word is a sign of life too. Where
an edge is lost, one of three has happened: one of its ends is gone, which its control connection or its silence shows;
or both live, and it is the way between them that is broken. A host whose edges go nowhere costs nobody else anything;
one that others receive from costs a phase with another plan, and so does an edge. So does one whose store is slow: it
lives, and its parents wait for it. A host whose edges break in phase after phase is left out of the trees: it gets its
data from the sender, behind all others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from blast_transport.links.dialling import SOURCE
from blast_transport.store.store_pace import StorePace
from blast_transport.transports.sight import Flow, Sight
from blast_transport.transports.trees.plan import TreesPhase
from blast_transport.transports.trees.protocol.words import Word

_SETTLING_SECONDS = 0.3
"""After an edge is lost: by then whoever lives has said a word, and a control connection has ended."""
_QUIET_SECONDS = 1.5
"""Without a word: who is not heard, and has lost an edge besides, is frozen."""
_SIGHT_SECONDS = 0.5
_LONGEST_PAUSE = 0.5
_MAX_BROKEN = 4
"""Edges of one host, of which some others work."""


@dataclass(slots=True)
class _Suspicion:
    """Of an edge that is lost."""

    since: float
    reason: str


@dataclass(slots=True)
class Findings:
    """What has come to light: receivers who are lost, and why; and whether the trees have to be planned anew."""

    lost: dict[str, str] = field(default_factory=dict)
    anew: bool = False


class Oversight:
    """Of one phase, from `now` on."""

    def __init__(self, phase: TreesPhase, now: float) -> None:
        self._phase = phase
        self._began = self._seen_at = self._ticked = now
        self._heard = dict.fromkeys(range(1, len(phase.members)), now)
        self._planned = phase.planned()
        self._flows: dict[tuple[int, int], tuple[float, bool]] = {}
        self._suspected: dict[tuple[int, int], _Suspicion] = {}
        self._gone: dict[int, str] = {}
        self._broken: dict[tuple[int, int], str] = {}
        # Since when each store is slow, and how each does.
        self._slow: dict[int, float] = {}
        self._paces: dict[int, StorePace] = {}
        self._news = False
        self._found = Findings()

    @property
    def suspects(self) -> bool:
        """Some edge is lost, and it is not known why yet."""
        return bool(self._suspected)

    @property
    def broken(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) of the edges that are."""
        return tuple((self._phase.name(parent), self._phase.name(child)) for parent, child in self._broken)

    def unreliable(self, earlier: frozenset[tuple[str, str]]) -> set[str]:
        """Hosts to whom broken edges are due, rather than to those at their other ends.

        None of a host's edges works, and it had another broken one, or it had `_MAX_BROKEN` in all, `earlier` phases
        included. Without this, one host that accepts no connection would have the trees planned anew without end.
        """
        broken = earlier | frozenset(self.broken)
        planned = [(self._phase.name(parent), self._phase.name(child)) for parent, child in self._planned]
        counts = Counter(host for edge in broken for host in edge if host != SOURCE)
        return {
            host
            for host, count in counts.items()
            if count >= _MAX_BROKEN or (count > 1 and all(edge in broken for edge in planned if host in edge))
        }

    def word(self, place: int, word: Word, now: float) -> None:
        """The host at this place says a word."""
        if place:
            self._heard[place] = now
        for child, rate, held_back in word.flows:
            if (place, child) in self._planned:
                self._flows[place, child] = rate, held_back
        for parent, child, reason in word.lost:
            # Nobody can say anything of an edge that is not his.
            if place in (parent, child) and (parent, child) in self._planned and (parent, child) not in self._broken:
                self._suspected.setdefault((parent, child), _Suspicion(now, reason))
        self._store(place, word, now)

    def gone(self, name: str, reason: str) -> None:
        """The session has lost this receiver."""
        for place in range(1, len(self._phase.members)):
            if self._phase.name(place) == name and place not in self._gone:
                self._lose(place, reason)

    def tick(self, now: float) -> Findings:
        """What has come to light since the last call; it is due some times a second."""
        if (stopped := now - self._ticked - _LONGEST_PAUSE) > 0:
            # We were stopped ourselves, or kept from the processor, and may not have read what others said.
            self._heard = {place: heard + stopped for place, heard in self._heard.items()}
        self._ticked = now
        for edge in list(self._suspected):
            self._judge(edge, now)
        for place, since in list(self._slow.items()):
            others = [pace for other, pace in self._paces.items() if other != place and other not in self._gone]
            better = any(pace is not StorePace.SLOW for pace in others)
            if now >= since + self._phase.timings.slow and better and place not in self._gone:
                self._accuse(place, "its store takes less than half of what comes")
                self._found.anew = True
        found, self._found = self._found, Findings()
        return found

    def sight(self, now: float) -> Sight | None:
        """What is seen, if it is time to say so."""
        if not self._news and now < self._seen_at + _SIGHT_SECONDS:
            return None
        self._news, self._seen_at = False, now
        flows = tuple(
            Flow(self._phase.name(parent), self._phase.name(child), rate, planned, held_back)
            for (parent, child), planned in self._planned.items()
            for rate, held_back in [self._flows.get((parent, child), (0.0, False))]
        )
        lost = tuple(self._phase.name(place) for place in self._gone)
        return Sight(now - self._began, flows, lost, self.broken)

    def _judge(self, edge: tuple[int, int], now: float) -> None:
        suspicion = self._suspected[edge]
        if any(place in self._gone for place in edge):
            del self._suspected[edge]
            return
        if now < suspicion.since + _SETTLING_SECONDS:
            return
        silent = [place for place in edge if place and now >= self._heard[place] + _QUIET_SECONDS]
        for place in silent:
            self._accuse(place, f"nothing heard of it for {now - self._heard[place]:.1f} s, and {suspicion.reason}")
        if silent or all(place == 0 or self._heard[place] > suspicion.since for place in edge):
            del self._suspected[edge]
            if not silent:
                self._broken[edge] = suspicion.reason
                self._news = self._found.anew = True

    def _accuse(self, place: int, reason: str) -> None:
        """The session has not noticed yet."""
        self._found.lost[self._phase.name(place)] = reason
        self._lose(place, reason)

    def _lose(self, place: int, reason: str) -> None:
        self._gone[place] = reason
        self._news = True
        if any(tree.children(place) for tree in self._phase.trees):
            self._found.anew = True

    def _store(self, place: int, word: Word, now: float) -> None:
        pace = StorePace(word.store)
        self._paces[place] = pace
        if pace is StorePace.SLOW:
            self._slow.setdefault(place, now)
        else:
            self._slow.pop(place, None)
        alone = len(self._phase.members) - len(self._gone) <= 2
        if word.writing >= self._phase.timings.slow and not alone and place not in self._gone:
            self._accuse(place, f"its store has taken nothing for {self._phase.timings.slow:g} s")
            self._found.anew = True
