"""Transport `pipeline` at the sender: the source of a chain, in a thread of its own, and its events."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from dataclasses import replace

from blast_base.endpoint import listen_on
from blast_transport.base.engines import COMPILED
from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.host_order import as_given, by_name
from blast_transport.credentials.tls import TlsFiles
from blast_transport.links.chain_source import SourceAdmission
from blast_transport.links.dialling import SOURCE, Address
from blast_transport.links.reception import Reception
from blast_transport.store.sources.block_reader import UndigestedSource
from blast_transport.transports.choices import Chain, TransportChoice
from blast_transport.transports.confirmation import Confirmation
from blast_transport.transports.pipeline.chain_watch import ChainPosition, ChainWatch
from blast_transport.transports.pipeline.digest_queue import DigestQueue
from blast_transport.transports.pipeline.parameters import PipelineParameters, pipeline_phase
from blast_transport.transports.pipeline.protocol.messages import decode_failed
from blast_transport.transports.pipeline.protocol.phase import (
    NodeLost,
    PhaseDrained,
    PhaseEnded,
    PhaseProgress,
    PipelineEvent,
    Reported,
)
from blast_transport.transports.pipeline.protocol.skips import Skips
from blast_transport.transports.pipeline.source import PipelineSource
from blast_transport.transports.sending import (
    PeerLost,
    PhaseRequested,
    Reached,
    SendingContext,
    SendingEvent,
    SendingTransport,
    Sent,
)
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Phase

_BACKLOG = 128
"""Nodes that fetch at once; a chain dials one after the other."""
_BLOCKS_PER_STEP = 32
_IDLE_SECONDS = 0.5
_UNDER_WAY_BYTES = 8 << 20
"""More than a socket's buffer and a chunk hold between the source and its successor."""


class PipelineSender(SendingTransport):
    """Leads a chain of receivers, and digests what goes along it, unless the chain's source does."""

    def __init__(self, phase: Phase, choice: Chain, around: SendingContext) -> None:
        super().__init__(phase)
        self._choice, self._around, self._reader = choice, around, around.reader
        chain = _order(choice, around)
        self._listener = listen_on(around.own_address, 0, _BACKLOG)
        self._nodes = PipelineParameters(
            ((SOURCE, *self._listener.getsockname()[:2]), *chain),
            0,
            choice.slowest_rate / 8,
            choice.node_timeout,
            choice.buffer,
        )
        self._places = {name: place for place, (name, _, _) in enumerate(chain, 1)}
        self._happened: queue.SimpleQueue[PipelineEvent] = queue.SimpleQueue()
        self._digests = self._digest_queue()
        self._source: PipelineSource | None = None
        self._reception: Reception | None = None
        self._sent = phase.first
        # End of this phase after `leave`; the next transport begins there.
        self._stop: int | None = None
        self._watch = ChainWatch()
        self._lost: set[str] = set()
        self._stuck: set[str] = set()
        self._renewed = False
        self._confirmation = Confirmation()

    def phase(self, name: str) -> Phase | None:
        """Return the Phase with this node's position; None for a receiver outside of the chain."""
        place = self._places.get(name)
        return None if place is None else self._at(place)

    def follow(self, choice: TransportChoice) -> bool:
        """Return whether the chain is the same: another order is another chain."""
        return choice == self._choice

    def work(self, now: float) -> float:
        """Digest what the chain carries, or leaves out. Raises SourceChangedError, ForgottenError."""
        source = self._source or self._begin()
        blocks = _BLOCKS_PER_STEP
        if self._digests is not None:
            sent = source.sent // self._reader.layout.block_size
            blocks = min(blocks, self._digests.pass_to(self._reader, sent))
        busy = blocks > 0 and self._reader.digest(blocks)
        if busy and self._reader.source.descriptor is None:
            source.wake()
        return 0 if busy else _IDLE_SECONDS

    def events(self) -> Iterator[SendingEvent]:
        """Return the events of the chain, and the sender's own observations."""
        while not self._happened.empty():
            yield from self._translate(self._happened.get())
        if self._stuck and not self._renewed:
            self._renewed = True
            yield from (PeerLost(name, "at one end of a link over which nothing passes") for name in self._stuck)
            yield PhaseRequested(replace(self._choice, without=self._choice.without | self._stuck))

    def look(self, reached: Mapping[str, Reached], now: float) -> None:
        """Find out whether data passes along the whole chain, and whether all is there though no report comes."""
        if self._source is None or self.over or self._stop is not None or self._renewed:
            return
        names = [name for name in self._places if name in reached and name not in self._lost]
        block_size, data = self._reader.layout.block_size, self._reader.source
        nodes = [ChainPosition(name, reached[name].position * block_size) for name in names]
        if (link := self._watch.stuck([ChainPosition(SOURCE, data.available), *nodes], now)) is not None:
            self._stuck = set(link) - {SOURCE}
        complete = data.size is not None and all(node.position >= data.size for node in nodes)
        self.over = self._confirmation.is_overdue(complete, now)

    def receiver_lost(self, name: str, reason: str) -> None:
        """Record the loss; its neighbors detect it themselves."""
        self._lost.add(name)

    def receive_report(self, name: str, body: bytes, now: float) -> None:
        """Handle a report of a node that continues without some nodes behind it."""
        chain, own = self._nodes.chain, self._places.get(name, 0)
        for place, reason in decode_failed(body).items():
            if own == 0 or not own < place < len(chain):
                raise RemoteProtocolError(f"excluded the node at position {place}, which is not behind it")
            self._happened.put(NodeLost(chain[place][0], reason))

    def leave(self) -> int | None:
        """Complete the blocks that may be in flight; the next transport begins after them."""
        if self._source is None or self.over or self._renewed:
            return None
        self._stop = -(-self._under_way(self._source) // self._reader.layout.block_size)
        self._source.stop_at(self._stop)
        return self._stop

    def quit(self, reason: str) -> None:
        """End the chain at all nodes; the report still arrives."""
        if self._source is not None:
            self._source.quit(reason)

    def close(self) -> None:
        """End the chain, if it has not ended."""
        if self._source is not None:
            self._source.stop("the sender goes on by another way")
        if self._reception is not None:
            self._reception.close()
        else:
            self._listener.close()

    def _at(self, place: int) -> Phase:
        return replace(self._phase, parameters=to_parameters(self._nodes.replace(position=place)))

    def _begin(self) -> PipelineSource:
        around, phase = self._around, self._phase
        source = self._source = PipelineSource(
            pipeline_phase(self._at(0)),
            UndigestedSource(self._reader),
            self._reader.layout.block_size,
            self._note,
            around.dial,
            engine=self._reader.engine,
            skips=self._skips(),
            digested=None if self._digests is None else self._digests.add,
        )
        admission = SourceAdmission(around.credentials, self._places)
        self._reception = Reception(self._listener, admission, phase, source.accept)
        source.start()
        return source

    def _digest_queue(self) -> DigestQueue | None:
        """Return a queue of the digests that the source computes; None if it computes none: over TLS, and in Python."""
        layout, around = self._reader.layout, self._around
        if self._reader.engine != COMPILED or not layout.known or isinstance(around.credentials, TlsFiles):
            return None
        return DigestQueue(layout.blocks, around.wake)

    def _skips(self) -> Skips:
        layout = self._reader.layout
        if layout.size is None:
            return Skips()
        ranges = ((layout.offset(first), layout.offset(first + count)) for first, count in self._around.held.ranges())
        return Skips(layout.block_size, ((begin, min(stop, layout.size)) for begin, stop in ranges))

    def _note(self, event: PipelineEvent) -> None:
        self._happened.put(event)
        self._around.wake()

    def _translate(self, event: PipelineEvent) -> Iterator[SendingEvent]:
        match event:
            case PhaseProgress(position) | PhaseDrained(position):
                whole = position == self._reader.source.size
                stop = -(-position // self._reader.layout.block_size) if whole else self._blocks(position)
                self._sent = stop if self._stop is None else min(stop, self._stop)
                yield Sent(self._sent)
            case NodeLost(name, reason):
                yield from self._lose({name: reason})
            case Reported(failed):
                yield from self._lose(failed)
            case PhaseEnded():
                # Receivers request its missing blocks at the end.
                self.over = True

    def _blocks(self, position: int) -> int:
        return max(self._sent, position // self._reader.layout.block_size)

    def _lose(self, failed: dict[str, str]) -> Iterator[SendingEvent]:
        # Another transport may cut off the end of a chain; receivers then request the missing blocks.
        if self._stop is None:
            lost = {name: reason for name, reason in failed.items() if name in self._places}
            self._lost.update(lost)
            yield from (PeerLost(name, reason) for name, reason in lost.items())

    def _under_way(self, source: PipelineSource) -> int:
        """Return the offset before which bytes may already be on their way along the chain."""
        data = self._reader.source
        if data.descriptor is None:
            return data.available
        return max(source.begun, self._reader.layout.offset(self._sent)) + _UNDER_WAY_BYTES


def _order(choice: Chain, around: SendingContext) -> list[Address]:
    addresses = {m.address[0]: m.address for m in around.members if m.address[0] not in choice.without}
    if choice.order is None:
        names = by_name(addresses)
    else:
        names = as_given(addresses, [name for name in choice.order if name in addresses])
    # A lagging node would make the others wait: it goes last.
    lagging = {member.address[0] for member in around.members if member.lags}
    return [addresses[name] for name in sorted(names, key=lagging.__contains__)]
