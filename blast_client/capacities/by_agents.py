"""Capacities that the agents of the hosts measure between each other, over real connections.

First every link, in rounds of pairs that share no host; then what each host sends to all others at once, and what it
takes from all others at once, because an access link is shared by all of its paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from blast_client.base_error import BlastError, WrongArgument
from blast_client.capacities.capacities import Capacities
from blast_client.capacities.rounds import Pair, link_rounds
from blast_client.receivers import Receiver
from blast_transport.links.dialling import Dialer
from blast_transport.measuring.flows import HERE, Flow, Size, measure_flows
from blast_transport.wire.measuring import MOST_STREAMS

MOST_HOSTS = 128


class NothingMeasured(BlastError):
    """No link carries anything, or none of the root's."""


class Step(NamedTuple):
    """How far the measuring is: steps done, steps in all, and what was measured last."""

    done: int
    total: int
    what: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What was measured; `dead`: links without a rate, and why; `away`: hosts that do not answer, and why."""

    capacities: Capacities
    dead: dict[Pair, str]
    away: dict[str, str]


@dataclass(slots=True)
class _Rates:
    links: dict[Pair, float] = field(default_factory=dict)
    out: dict[str, float] = field(default_factory=dict)
    into: dict[str, float] = field(default_factory=dict)
    dead: dict[Pair, str] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)


class AgentCapacities:
    """A CapacitySource. `agents`: those of the hosts; a root without one is this process."""

    def __init__(
        self,
        agents: Sequence[Receiver],
        dialer: Dialer,
        size: Size = Size(),  # noqa: B008 - frozen
        report: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._agents = {agent[0]: agent for agent in agents}
        self._dialer, self._size, self._report = dialer, size, report

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Between the root and these. Raises NothingMeasured, WrongArgument."""
        return self.measure(root, receivers).capacities

    def measure(self, root: str, receivers: Sequence[str]) -> Findings:
        """The same, with all that went wrong. Raises NothingMeasured, WrongArgument."""
        hosts = [root, *receivers]
        if len(hosts) > MOST_HOSTS:
            raise WrongArgument(f"{len(hosts)} hosts are too many to measure each link of: at most {MOST_HOSTS}")
        if without := [name for name in receivers if name not in self._agents]:
            raise WrongArgument(f"nobody said where the agent of {without[0]!r} listens: write HOST=ADDRESS:PORT")
        found = _Rates()
        rounds = link_rounds(hosts, root)
        self._measure_links(rounds, len(rounds) + 2 * len(hosts) - 1, found)
        self._measure_access(hosts, root, len(rounds), found)
        whole = Capacities(tuple(hosts), root, tuple(receivers), found.links, found.out, found.into)
        reached = whole.reachable()
        served = tuple(name for name in receivers if name in reached)
        if not served:
            reasons = [*found.away.values(), *found.dead.values()]
            raise NothingMeasured(f"nothing gets from {root} to any of the hosts: {reasons[0]}")
        return Findings(replace(whole, receivers=served), found.dead, found.away)

    def _measure_links(self, rounds: Sequence[Sequence[Pair]], total: int, found: _Rates) -> None:
        for number, pairs in enumerate(rounds, start=1):
            rates = self._best(pairs, found)
            for start, end in pairs:
                rate = found.links[start, end] = rates.get(end, 0.0)
                if rate:
                    found.dead.pop((start, end), None)
            self._report(Step(number, total, "links"))

    def _measure_access(self, hosts: Sequence[str], root: str, done: int, found: _Rates) -> None:
        total = done + 2 * len(hosts) - 1
        for host in hosts:
            live = [link for link, rate in found.links.items() if rate and host == link[0]]
            self._measure_together(live, host, found.out, found)
            done += 1
            self._report(Step(done, total, f"all that {host} sends"))
        for host in hosts:
            if host != root:
                live = [link for link, rate in found.links.items() if rate and host == link[1]]
                self._measure_together(live, host, found.into, found)
                done += 1
                self._report(Step(done, total, f"all that {host} takes"))

    def _measure_together(self, links: Sequence[Pair], host: str, rates: dict[str, float], found: _Rates) -> None:
        """An access link carries at least what the best of its paths does."""
        best = max((found.links[link] for link in links), default=0.0)
        together = sum(self._best(links, found).values()) if len(links) > 1 else 0.0
        rates[host] = max(best, together)

    def _best(self, links: Sequence[Pair], found: _Rates) -> dict[str, float]:
        """Rates by target, along all of these at once: with one stream, with several where wanted, what is better."""
        rates: dict[str, float] = {}
        for streams in dict.fromkeys((1, self._size.streams)):
            flows = self._flows(links, found)
            if not flows:
                break
            size = replace(self._size, streams=min(streams, MOST_STREAMS // len(flows) or 1))
            measured = measure_flows(flows, self._dialer, size)
            found.away |= {name: reason for name, reason in measured.away.items() if name not in found.away}
            for start, end in links:
                if end in measured.failed and (start, end) not in found.links:
                    found.dead[start, end] = measured.failed[end]
            for end, got in measured.measured.items():
                rates[end] = max(rates.get(end, 0.0), float(round(got.rate)))
        return rates

    def _flows(self, links: Sequence[Pair], found: _Rates) -> list[Flow]:
        """Those whose ends have not been lost."""
        flows: list[Flow] = []
        for start, end in links:
            gone = next((name for name in (start, end) if name in found.away), None)
            if gone is None:
                flows.append((self._agents.get(start, HERE), self._agents[end]))
            else:
                found.dead.setdefault((start, end), f"{gone} does not answer: {found.away[gone]}")
        return flows
