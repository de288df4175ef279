"""Capacities that the agents of the hosts measure between each other, over real connections.

They measure every link first, in rounds of pairs that share no host. Then each host sends to all others at once, and
receives from all others at once, since all paths of a host share its access link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.capacities.capacities import MAX_RATE, Capacities
from blast_client.capacities.rounds import Pair, link_rounds
from blast_client.send.receivers import Receiver
from blast_transport.links.dialling import Dialer
from blast_transport.measuring.flows import HERE, Flow, FlowSize, FlowsMeasured, measure_flows
from blast_transport.wire.measuring import MAX_STREAMS

MAX_HOSTS = 128
_MAX_TOGETHER = 1 << 30
"""Bytes of all concurrent flows of a host: the default limit of an agent."""


class MeasurementError(BlastError):
    """No link carries data, or no link of the root does."""


class MeasurementStep(NamedTuple):
    """Progress of a measurement: steps done, steps in total, and the last subject."""

    done: int
    total: int
    subject: str


@dataclass(frozen=True, slots=True)
class AgentFindings:
    """Measured capacities, and the reasons of missing ones.

    `dead`: links that carry no data. `away`: hosts that do not answer. `alone`: hosts whose links could not be measured
    together; the rate of the fastest link is then the rate of the access link.
    """

    capacities: Capacities
    dead: Mapping[Pair, str] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    alone: Mapping[str, str] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """True if every capacity was measured."""
        return not (self.dead or self.away or self.alone)


@dataclass(slots=True)
class _Rates:
    links: dict[Pair, float] = field(default_factory=dict)
    out: dict[str, float] = field(default_factory=dict)
    into: dict[str, float] = field(default_factory=dict)
    dead: dict[Pair, str] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)
    alone: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Best:
    """The better of two attempts: the rate of each target, the reason of each failure, and the rate of all together.

    `together` is the mean rate over the whole time. Flows that share an access link lose segments in bursts, and TCP
    then delivers delayed data in lumps, so that the rate of a shorter interval would be too high.
    """

    rates: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    together: float = 0.0

    def add(self, measured: FlowsMeasured) -> None:
        """Add the result of an attempt."""
        self.failed.update(measured.failed)
        for end, got in measured.measured.items():
            self.rates[end] = max(self.rates.get(end, 0.0), _whole(got.rate))
        seconds = max((got.seconds for got in measured.measured.values()), default=0.0)
        if seconds:
            received = sum(got.received for got in measured.measured.values())
            self.together = max(self.together, _whole(8 * received / seconds))


def _whole(rate: float) -> float:
    """Return a rate in whole bits/s, within the bounds of a network file: 1 (0 would mean a dead link) to MAX_RATE."""
    return float(round(min(max(rate, 1.0), MAX_RATE)))


class AgentCapacities:
    """A CapacitySource that measures. A root that is not in `agents` is this process."""

    def __init__(
        self,
        agents: Sequence[Receiver],
        dialer: Dialer,
        size: FlowSize = FlowSize(),  # noqa: B008 - frozen
        report: Callable[[MeasurementStep], None] = lambda step: None,
    ) -> None:
        self._agents = {agent[0]: agent for agent in agents}
        self._dialer, self._size, self._report = dialer, size, report

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Return the capacities between the root and the receivers. Raises MeasurementError, InvalidArgumentError."""
        return self.measure(root, receivers).capacities

    def measure(self, root: str, receivers: Sequence[str]) -> AgentFindings:
        """Return the capacities and the failures. Raises MeasurementError, InvalidArgumentError."""
        hosts = [root, *receivers]
        if len(hosts) > MAX_HOSTS:
            raise InvalidArgumentError(f"cannot measure {len(hosts)} hosts: name at most {MAX_HOSTS}")
        if without := [name for name in receivers if name not in self._agents]:
            raise InvalidArgumentError(
                f"the address of the agent of {without[0]!r} is missing: write HOST=ADDRESS:PORT"
            )
        found = _Rates()
        rounds = link_rounds(hosts, root)
        self._measure_links(rounds, len(rounds) + 2 * len(hosts) - 1, found)
        self._measure_access(hosts, root, len(rounds), found)
        whole = Capacities(tuple(hosts), root, tuple(receivers), found.links, found.out, found.into)
        reached = whole.reachable()
        served = tuple(name for name in receivers if name in reached)
        if not served:
            reasons = [*found.away.values(), *found.dead.values()]
            raise MeasurementError(f"no data reaches any host from {root}: {reasons[0]}")
        return AgentFindings(replace(whole, receivers=served), found.dead, found.away, found.alone)

    def _measure_links(self, rounds: Sequence[Sequence[Pair]], total: int, found: _Rates) -> None:
        for number, pairs in enumerate(rounds, start=1):
            best = self._best(pairs, 1, found)
            for start, end in pairs:
                found.links[start, end] = best.rates.get(end, 0.0)
                if end not in best.rates:
                    absent = next((name for name in (start, end) if name in found.away), None)
                    found.dead[start, end] = best.failed.get(end) or f"{absent} does not answer"
            self._report(MeasurementStep(number, total, "links"))

    def _measure_access(self, hosts: Sequence[str], root: str, done: int, found: _Rates) -> None:
        total = done + 2 * len(hosts) - 1
        senders = {start for start, _ in found.links}
        for host in hosts:
            live = [link for link, rate in found.links.items() if rate and host == link[0]]
            if host in senders:
                self._measure_together(live, host, found.out, found)
            done += 1
            self._report(MeasurementStep(done, total, f"sending of {host}"))
        for host in hosts:
            if host != root:
                live = [link for link, rate in found.links.items() if rate and host == link[1]]
                self._measure_together(live, host, found.into, found)
                done += 1
                self._report(MeasurementStep(done, total, f"receiving of {host}"))

    def _measure_together(self, links: Sequence[Pair], host: str, rates: dict[str, float], found: _Rates) -> None:
        """Measure the access link of a host: at least the rate of the fastest of its links."""
        rates[host] = max((found.links[link] for link in links), default=0.0)
        if len(links) > 1:
            best = self._best(links, len(links), found)
            rates[host] = max(rates[host], best.together)
            found.alone.update((host, reason) for reason in best.failed.values())

    def _best(self, links: Sequence[Pair], sharing: int, found: _Rates) -> _Best:
        """Measure links at once, with one stream and with the configured number; `sharing` flows share a host."""
        best = _Best()
        for streams in dict.fromkeys((1, self._size.streams)):
            lost = found.away.keys()
            flows = [self._flow(link) for link in links if not lost & set(link)]
            if not flows:
                break
            size = replace(
                self._size,
                bytes=min(self._size.bytes, _MAX_TOGETHER // sharing),
                streams=min(streams, MAX_STREAMS // sharing),
            )
            measured = measure_flows(flows, self._dialer, size)
            found.away = {**measured.away, **found.away}
            best.add(measured)
        return best

    def _flow(self, link: Pair) -> Flow:
        start, end = link
        return self._agents.get(start, HERE), self._agents[end]
