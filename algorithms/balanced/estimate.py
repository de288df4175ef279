"""Estimate of the current capacities of a network from the traffic of a multicast.

Flows are paced: a flow that reaches its pace shows only that capacity suffices. So a slowdown shows by itself, a
recovery does not. A flow that the network holds back shows the residual capacity of its path or of an access link. A
slow path or link is suspected until a probe measures its former rate (the paper's section 2.2 relies on a monitor that
probes, Delphoi with PathRate and PathChirp; its section 3.3 also probes itself).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from algorithms.balanced.network import DisconnectedError, Network

DRIFT = 0.85
"""Share of the planned rate below which a held-back flow indicates a slower network. Headers take 0.05."""

STEADY_SECONDS = 1.0
"""Time for which a flow must be held back, in seconds: buffers on the path fill and drain."""

PROBE_SECONDS = 4.0
"""Seconds between two probes of the same suspect."""

RECOVERED = 1.15
"""Factor by which a probe must exceed the estimate: probes are not more precise."""


@dataclass(frozen=True, slots=True)
class EstimatedFlow:
    """The recent rate from one host to another, of all trees together.

    Parameters
    ----------
    sender, receiver : int
        Numbers of the hosts.
    rate : float
        Measured rate, in the network's unit.
    planned : float
        Planned rate, in the network's unit.
    held_back : bool
        True if the network took less than `planned` although more data was ready.
    """

    sender: int
    receiver: int
    rate: float
    planned: float
    held_back: bool


class NetworkPart(Enum):
    """The part that limits a flow: the path, or an access link in one direction."""

    PATH = auto()
    """The path from the sender to the receiver."""

    OUT = auto()
    """The sender's access link."""

    INTO = auto()
    """The receiver's access link."""


class NetworkPlace(NamedTuple):
    """A part of the network: a path from `sender` to `receiver`, or the access link of one of them.

    Parameters
    ----------
    part : Part
        The path, or the sender's or the receiver's access link.
    sender, receiver : int
        Numbers of the hosts.
    """

    part: NetworkPart
    sender: int
    receiver: int


class NetworkEstimate:
    """A network, and the changes measured in it. Times are seconds of one clock.

    Parameters
    ----------
    network : Network
        The known capacities.

    Attributes
    ----------
    network : Network
        The current estimate.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._known = network
        self._slow_since: dict[NetworkPlace, float] = {}
        self._suspects: dict[NetworkPlace, float] = {}

    def see(self, flows: Sequence[EstimatedFlow], now: float) -> bool:
        """Record measured flows.

        Parameters
        ----------
        flows : sequence of Flow
            All flows of the multicast.
        now : float
            Time of the measurement in seconds.

        Returns
        -------
        bool
            True if the network is slower than estimated; `network` is then the new estimate.
        """
        found = dict(_held_back(flows))
        self._slow_since = {place: self._slow_since.get(place, now) for place in found}
        slower = False
        for place, rate in found.items():
            steady = now >= self._slow_since[place] + STEADY_SECONDS
            if steady and rate < DRIFT * self._rate(place):
                slower = self._slow_down(place, rate, now) or slower
        return slower

    def broken(self, sender: int, receiver: int, now: float) -> bool:
        """Record a failed connection.

        Parameters
        ----------
        sender, receiver : int
            Numbers of the hosts.
        now : float
            Time of the failure in seconds.

        Returns
        -------
        bool
            True if the failure is new and leaves all receivers reachable.
        """
        return self._slow_down(NetworkPlace(NetworkPart.PATH, sender, receiver), 0.0, now)

    def suspect(self, now: float) -> NetworkPlace | None:
        """Return the next place to probe, by a stream from its sender to its receiver.

        The next probe of this place is due `PROBE_SECONDS` later.

        Parameters
        ----------
        now : float
            The current time in seconds.

        Returns
        -------
        Place or None
            None if no probe is due.
        """
        place = min(self._suspects, key=self._suspects.__getitem__, default=None)
        if place is None or now < self._suspects[place]:
            return None
        self._suspects[place] = now + PROBE_SECONDS
        return place

    def probed(self, place: NetworkPlace, rate: float) -> bool:
        """Record the result of a probe.

        Parameters
        ----------
        place : Place
            The place that was probed.
        rate : float
            Measured rate, including other traffic there, in the network's unit.

        Returns
        -------
        bool
            True if the place is faster than estimated; `network` is then the new estimate.
        """
        if place not in self._suspects or rate < RECOVERED * self._rate(place) or rate == 0:
            return False
        known = _rate_of(self._known, place)
        whole = rate >= DRIFT * known
        self.network = _with(self.network, place, known if whole else rate)
        if whole:
            del self._suspects[place]
        return True

    def _slow_down(self, place: NetworkPlace, rate: float, now: float) -> bool:
        if rate == self._rate(place):
            return False
        try:
            self.network = _with(self.network, place, rate)
        except DisconnectedError:
            return False
        self._suspects[place] = now + PROBE_SECONDS
        return True

    def _rate(self, place: NetworkPlace) -> float:
        return _rate_of(self.network, place)


def _with(network: Network, place: NetworkPlace, rate: float) -> Network:
    """Return the network with this rate there.

    Raises
    ------
    DisconnectedError
        If the rate is 0 and a receiver can no longer be reached.
    """
    match place.part:
        case NetworkPart.PATH:
            rates = network.rates.copy()
            rates[place.sender, place.receiver] = rate
            return replace(network, rates=rates)
        case NetworkPart.OUT:
            out = network.out.copy()
            out[place.sender] = rate
            return replace(network, out=out)
        case NetworkPart.INTO:
            into = network.into.copy()
            into[place.receiver] = rate
            return replace(network, into=into)


def _rate_of(network: Network, place: NetworkPlace) -> float:
    match place.part:
        case NetworkPart.PATH:
            return float(network.rates[place.sender, place.receiver])
        case NetworkPart.OUT:
            return float(network.out[place.sender])
        case NetworkPart.INTO:
            return float(network.into[place.receiver])


def _held_back(flows: Iterable[EstimatedFlow]) -> Iterable[tuple[NetworkPlace, float]]:
    """Yield the parts that hold flows back, and their rates: an access link if it explains all of several flows."""
    leaving, entering = defaultdict[int, list[EstimatedFlow]](list), defaultdict[int, list[EstimatedFlow]](list)
    for flow in flows:
        leaving[flow.sender].append(flow)
        entering[flow.receiver].append(flow)
    for flow in flows:
        if not _is_slow(flow):
            continue
        # The first of them represents all.
        if _explains(sent := leaving[flow.sender]):
            if flow is sent[0]:
                yield NetworkPlace(NetworkPart.OUT, flow.sender, flow.receiver), _together(sent)
        elif _explains(received := entering[flow.receiver]):
            if flow is received[0]:
                yield NetworkPlace(NetworkPart.INTO, flow.sender, flow.receiver), _together(received)
        else:
            yield NetworkPlace(NetworkPart.PATH, flow.sender, flow.receiver), flow.rate


def _explains(flows: Sequence[EstimatedFlow]) -> bool:
    return len(flows) > 1 and all(map(_is_slow, flows))


def _is_slow(flow: EstimatedFlow) -> bool:
    return flow.held_back and flow.rate < DRIFT * flow.planned


def _together(flows: Sequence[EstimatedFlow]) -> float:
    return sum(flow.rate for flow in flows)
