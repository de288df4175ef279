"""The transport `multicast` at a receiver: it joins the group, and reports what passed and what was lost."""

from __future__ import annotations

import time
from collections.abc import Iterable

from blast_transport.base.errors import WrongInputError
from blast_transport.datagrams.receiver import GroupReceiver
from blast_transport.transports.multicast.feedback import LossCounter, Reporting, decode_order, encode_report
from blast_transport.transports.receiving import ReceivingContext, SegmentsArrived, StatusReport, TransportEvent
from blast_transport.wire.groups import group_parameters
from blast_transport.wire.messages import Phase

_GATHERING_SECONDS, _ORDERED_SECONDS = 0.01, 0.0005
"""Time for which data may collect before it is read: a reading costs as much as a block. If the sender has ordered
reports, the time adds to the round trip, and that of a LAN is as short."""


class MulticastReceiver(GroupReceiver):
    """Receiver of a group on a packet network. Raises RemoteProtocolError, WrongInputError, OSError."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        if around.own_address is None:
            raise WrongInputError("this host has no address on the packet network")
        parameters = group_parameters(phase)
        source = parameters.source if parameters.source_specific else None
        sock = around.open_group(around.own_address, parameters.group, parameters.port, source)
        super().__init__(phase, sock, (parameters.source, parameters.source_port), around, _GATHERING_SECONDS)
        store = around.assembly.store
        segments = store.layout.block_segments
        self._reporting = Reporting(LossCounter(phase.first * segments, store.held, segments), time.monotonic())
        self._due, self._segment_size = self._moderation.due, store.layout.segment_size

    def stay(self, until: float, segments: int) -> None:
        """Read no longer than until the next report is due."""
        due = self._reporting.until_due
        super().stay(until, segments if due is None else min(segments, due))

    def events(self) -> Iterable[TransportEvent]:
        """Return the arrivals, and the report that is due."""
        arrived = [event for event in super().events() if isinstance(event, SegmentsArrived)]
        for event in arrived:
            self._reporting.passed(event.runs, self._datagrams.read_at)
        report = self._reporting.take(time.monotonic())
        if report is None:
            return arrived
        return [*arrived, StatusReport(self._phase.number, encode_report(report))]

    def receive_order(self, body: bytes) -> None:
        """Follow the sender's order about reports. Raise RemoteProtocolError."""
        segments = decode_order(body)
        self._reporting.order(segments)
        ordered = segments > 0
        self._moderation.max_wait = _ORDERED_SECONDS if ordered else _GATHERING_SECONDS
        self._moderation.due = min(self._due, segments * self._segment_size) if ordered else self._due
