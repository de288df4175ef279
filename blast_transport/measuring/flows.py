"""Measurement of the rate of several flows at once: the commander, in one thread.

The commander may be a source itself, without an agent (`HERE`). It first makes each target's agent a sink; it starts a
source when all of its targets have accepted. A measurement may have one flow (a link), many disjoint ones (links that
do not affect each other), or all flows from or to one host (its access link).
"""

from __future__ import annotations

import math
import random
import secrets
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from blast_transport.base.errors import RemoteError, TransportError, sentence
from blast_transport.base.threads import start_thread
from blast_transport.links.control_connection import FramedConnection
from blast_transport.links.dialling import Address, Dialer
from blast_transport.measuring.loop import Loop
from blast_transport.measuring.source import MeasurementSource
from blast_transport.measuring.timings import ANSWER_SECONDS, DIAL_SECONDS, JOIN_SECONDS, drain_seconds
from blast_transport.wire.measuring import (
    MIN_BYTES,
    TOKEN_BYTES,
    Accepted,
    Measure,
    MeasurementResult,
    MeasuringDecoder,
    MeasuringMessage,
    Refused,
    SourceResult,
    encode_measuring,
)

HERE: Final = None
"""In place of a source's address: this process."""

Flow = tuple[Address | None, Address]
"""From an agent, or HERE, to an agent."""

_BUSY_SECONDS = 15.0
_OWN_SECONDS = 1.0
"""Time for which hosts may still be busy with a measurement that this commander abandoned."""
_MIN_PAUSE, _MAX_PAUSE = 0.05, 0.4
_LATE_SECONDS = 1.0
"""For the messages at the begin and the end of a measurement."""


@dataclass(frozen=True, slots=True)
class FlowSize:
    """Amount of data of each flow: bytes or seconds, whichever ends first, and number of connections."""

    bytes: int = 8 << 20
    seconds: float = 0.5
    streams: int = 1


SHORT = FlowSize(512 << 10, 0.2)
"""For a link of a transfer that is under way."""


@dataclass(frozen=True, slots=True)
class FlowsMeasured:
    """Results by name of the target, or the failures; `away`: hosts that do not answer, with the reason."""

    measured: Mapping[str, MeasurementResult]
    failed: Mapping[str, str]
    away: Mapping[str, str]


class LinkFailedError(RemoteError):
    """Nothing arrives by this link."""


class _BusyError(RemoteError):
    """Another commander measures at this host."""

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"{host}: {reason}")
        self.host = host


def measure_link(
    source: Address | None, target: Address, dialer: Dialer, size: FlowSize = SHORT, busy_timeout: float = _BUSY_SECONDS
) -> float:
    """Return the rate in bits/s from one host to another, beside all other traffic.

    Raise LinkFailedError with the reason if no data arrives, or if the hosts stay busy for `busy_timeout` seconds.
    """
    found = measure_flows([(source, target)], dialer, size, busy_timeout)
    if target[0] in found.failed:
        raise LinkFailedError(found.failed[target[0]])
    return found.measured[target[0]].rate


def measure_flows(
    flows: Sequence[Flow], dialer: Dialer, size: FlowSize, busy_timeout: float = _BUSY_SECONDS
) -> FlowsMeasured:
    """Measure all flows at once. Retry for `busy_timeout` seconds while other measurements use one of the hosts.

    Then the flows of busy hosts fail, and the others are measured. No host may be both source and target.
    """
    give_up = time.monotonic() + busy_timeout
    left, failed = list(flows), dict[str, str]()
    while left:
        try:
            found = _Measurement(left, dialer, size).run()
            return replace(found, failed={**failed, **found.failed})
        except _BusyError as busy:
            if time.monotonic() >= give_up:
                failed |= {flow[1][0]: str(busy) for flow in left if busy.host in _names(flow)}
                left = [flow for flow in left if busy.host not in _names(flow)]
                give_up = time.monotonic() + _OWN_SECONDS
        # Random, so that two measurements that blocked each other do not do so again.
        time.sleep(random.uniform(_MIN_PAUSE, _MAX_PAUSE))
    return FlowsMeasured({}, failed, {})


def _names(flow: Flow) -> list[str]:
    return [end[0] for end in flow if end is not None]


@dataclass(slots=True)
class _End:
    """Agent that takes part: as a source if it has `targets`.

    `ordered`: it got its order; `waiting`: it accepted; `over`: no more messages are expected.
    """

    address: Address
    order: Measure
    targets: tuple[str, ...] = ()
    connection: FramedConnection[MeasuringMessage] | None = None
    deadline: float = math.inf
    waiting: bool = False
    ordered: bool = False
    over: bool = False

    @property
    def name(self) -> str:
        return self.address[0]


@dataclass(slots=True)
class _Found:
    measured: dict[str, MeasurementResult] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    away: dict[str, str] = field(default_factory=dict)


class _Measurement:
    """One attempt. `run` raises _BusyError."""

    def __init__(self, flows: Sequence[Flow], dialer: Dialer, size: FlowSize) -> None:
        self._flows, self._dialer, self._size = flows, dialer, size
        self._token = secrets.token_bytes(TOKEN_BYTES)
        self._loop = Loop(dialer)
        self._found = _Found()
        self._sinks = {target[0]: self._sink(target) for _, target in flows}
        self._sources = {source[0]: self._source(source) for source, _ in flows if source is not None}
        self._from_here = tuple(target[0] for source, target in flows if source is HERE)
        self._local: MeasurementSource | None = None
        self._local_outcome: SourceResult | str | None = None
        self._local_ended = False

    def run(self) -> FlowsMeasured:
        """Run the measurement to its end."""
        try:
            for end in (*self._sinks.values(), *self._sources.values()):
                self._loop.dial(end.address, DIAL_SECONDS, partial(self._connected, end), partial(self._lose, end))
            while not self._done():
                self._loop.step(self._next_deadline())
                self._expire(time.monotonic())
                self._begin_sources()
                self._receive_local()
        finally:
            self._close()
        return FlowsMeasured(self._found.measured, self._found.failed, self._found.away)

    def _done(self) -> bool:
        """Return whether all ends are done, so that the next measurement finds none busy."""
        sinks, sources = self._sinks.values(), self._sources.values()
        sent = all(source.over or self._in_vain(source) for source in sources)
        return all(sink.over for sink in sinks) and sent and (self._local is None or self._local_ended)

    def _in_vain(self, source: _End) -> bool:
        """Return whether no sink waits for it; a source that has begun to send to any target completes it."""
        none_waits = all(self._sinks[name].over for name in source.targets)
        return none_waits and (not source.ordered or all(name in self._found.failed for name in source.targets))

    # ---------------------------------------------------------------------------------------------- the orders

    def _sink(self, target: Address) -> _End:
        sources = [source for source, other in self._flows if other == target]
        # A source may send the bytes of all of its targets to this one.
        max_flows = sum(sources.count(source) for source, _ in self._flows)
        return _End(target, self._order(self._size.streams * len(sources), max_flows))

    def _source(self, source: Address) -> _End:
        targets = tuple(target for other, target in self._flows if other == source)
        return _End(source, self._order(self._size.streams, len(targets), targets), tuple(t[0] for t in targets))

    def _order(self, streams: int, flows: int, targets: tuple[Address, ...] = ()) -> Measure:
        total = max(MIN_BYTES, self._size.bytes) * flows
        return Measure(self._token, total, self._size.seconds, streams, targets)

    def _begin_sources(self) -> None:
        for source in self._sources.values():
            if source.connection is not None and not (source.ordered or source.over) and self._all_wait(source.targets):
                self._send_order(source, self._reachable(source.order))
        if self._from_here and self._local is None and self._all_wait(self._from_here):
            targets = tuple(self._sinks[name].address for name in self._from_here)
            order = self._reachable(self._order(self._size.streams, len(targets), targets))
            self._local = MeasurementSource(order, self._dialer)
            start_thread("measuring", self._run_local, self._local)

    def _all_wait(self, names: Sequence[str]) -> bool:
        """Return whether at least one sink has not failed, and all of these have accepted."""
        left = [name for name in names if name not in self._found.failed]
        return bool(left) and all(self._sinks[name].waiting for name in left)

    def _reachable(self, order: Measure) -> Measure:
        targets = tuple(target for target in order.targets if target[0] not in self._found.failed)
        return order.replace(targets=targets)

    def _run_local(self, source: MeasurementSource) -> None:
        try:
            self._local_outcome = source.run()
        except (OSError, TransportError) as error:
            self._local_outcome = sentence(error)
        self._loop.wake()

    def _receive_local(self) -> None:
        if self._local_outcome is not None:
            outcome, self._local_outcome, self._local_ended = self._local_outcome, None, True
            unsent = (
                dict(outcome.failed) if isinstance(outcome, SourceResult) else dict.fromkeys(self._from_here, outcome)
            )
            self._fail_targets(unsent)

    # --------------------------------------------------------------------------------------------- the agents

    def _connected(self, end: _End, sock: socket.socket) -> None:
        end.connection = FramedConnection(sock, MeasuringDecoder(), encode_measuring)
        self._loop.watch(sock, selectors.EVENT_READ, partial(self._read, end))
        if not end.targets:
            self._send_order(end, end.order)

    def _send_order(self, end: _End, order: Measure) -> None:
        assert end.connection is not None
        end.ordered, end.deadline = True, time.monotonic() + ANSWER_SECONDS
        try:
            end.connection.send(order)
            end.connection.flush()
        except TransportError as error:
            self._lose(end, str(error))

    def _read(self, end: _End) -> None:
        assert end.connection is not None
        try:
            messages = end.connection.receive()
        except TransportError as error:
            self._lose(end, str(error) if end.waiting else f"{error}; an agent of an older version measures nothing")
            return
        for message in messages:
            self._take(end, message)

    def _take(self, end: _End, message: MeasuringMessage) -> None:
        match message:
            case Refused(busy=True):
                raise _BusyError(end.name, message.reason)
            case Refused():
                self._fail_end(end, message.reason)
            case Accepted() if end.ordered and not end.waiting:
                seconds = self._size.seconds
                end.waiting = True
                end.deadline = time.monotonic() + JOIN_SECONDS + seconds + drain_seconds(seconds) + _LATE_SECONDS
            case MeasurementResult() if not end.targets:
                self._take_measured(end, message)
            case SourceResult() if end.targets:
                self._release(end)
                self._fail_targets({name: reason for name, reason in message.failed if name in end.targets})
            case _:
                self._lose(end, f"unexpected message {type(message).__name__}")

    def _take_measured(self, sink: _End, measured: MeasurementResult) -> None:
        self._release(sink)
        if measured.rate > 0:
            self._found.measured[sink.name] = measured
        else:
            self._found.failed.setdefault(sink.name, "nothing has arrived")

    # ----------------------------------------------------------------------------------------- what goes wrong

    def _lose(self, end: _End, reason: str) -> None:
        """Record an end that is lost."""
        if end.name not in self._found.measured:
            self._found.away.setdefault(end.name, reason)
        self._fail_end(end, reason)

    def _fail_end(self, end: _End, reason: str) -> None:
        self._release(end)
        if end.targets:
            self._fail_targets(dict.fromkeys(end.targets, f"{end.name}: {reason}"))
        elif end.name not in self._found.measured:
            self._found.failed.setdefault(end.name, reason)

    def _fail_targets(self, reasons: Mapping[str, str]) -> None:
        """Fail these targets if no other source sends to them."""
        for name, reason in reasons.items():
            alone = sum(target[0] == name for _, target in self._flows) == 1
            if alone and name not in self._found.measured:
                self._release(self._sinks[name])
                self._found.failed.setdefault(name, reason)

    def _expire(self, now: float) -> None:
        for end in (*self._sinks.values(), *self._sources.values()):
            if now >= end.deadline:
                self._lose(end, "no answer in time")

    def _next_deadline(self) -> float:
        ends = (*self._sinks.values(), *self._sources.values())
        soonest = min(end.deadline for end in ends)
        return min(soonest, time.monotonic() + 1.0)

    def _release(self, end: _End) -> None:
        end.deadline, end.waiting, end.over = math.inf, False, True
        if end.connection is not None:
            self._loop.forget(end.connection.socket)
            end.connection.close()

    def _close(self) -> None:
        if self._local is not None:
            self._local.stop()
        for end in (*self._sinks.values(), *self._sources.values()):
            self._release(end)
        self._loop.close()
