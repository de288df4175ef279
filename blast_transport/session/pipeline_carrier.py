"""The carrier `pipeline` at the sender: the source of a chain, in a thread of its own, and what it tells us."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace

from blast_transport.links.chain_source import SourceAdmission
from blast_transport.links.dialling import Dialer
from blast_transport.links.reception import Reception
from blast_transport.pipeline import (
    Drained,
    Ended,
    Lost,
    PipelineEvent,
    PipelineSource,
    Progress,
    Reported,
)
from blast_transport.pipeline.parameters import PipelineParameters, pipeline_leg
from blast_transport.pipeline.receiver import by_name
from blast_transport.session.carrier import DIGESTS_TOLD
from blast_transport.session.reader import BlockReader, UndigestedKept
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.carriers import PIPELINE
from blast_transport.wire.fields import from_parameters, to_parameters
from blast_transport.wire.messages import Leg

_BLOCKS_PER_STEP = 32
_IDLE_SECONDS = 0.5
_UNDER_WAY_BYTES = 8 << 20
"""More than a socket's buffer and a chunk hold between the source and its successor."""


@dataclass(frozen=True, slots=True)
class Entrance:
    """How the chain and we reach each other: nodes come to `listener`, admitted by `admission`; `dialer` goes out."""

    listener: socket.socket
    admission: SourceAdmission
    dialer: Dialer


class PipelineCarrier:
    """Leads a chain of receivers, of which `leg` is the sender's. `wake` ends the waiting of whoever calls `step`."""

    name = PIPELINE

    def __init__(
        self,
        leg: Leg,
        entrance: Entrance,
        reader: BlockReader,
        reached: Callable[[int], None],
        wake: Callable[[], None],
    ) -> None:
        self._leg, self._reader, self._reached, self._wake = leg, reader, reached, wake
        self._nodes = from_parameters(PipelineParameters, leg.parameters)
        self._entrance = entrance
        self._reception: Reception | None = None
        self._places = {name: place for place, (name, _, _) in enumerate(self._nodes.chain)}
        self._events: queue.SimpleQueue[PipelineEvent] = queue.SimpleQueue()
        self._source: PipelineSource | None = None
        self._left = False
        self._over = False

    @property
    def over(self) -> bool:
        """The chain has ended, well or badly."""
        return self._over

    def leg(self, name: str) -> Leg | None:
        """Each node hears its own place; who is not in the chain gets nothing."""
        place = self._places.get(name)
        return None if place is None else self._at(place)

    def _at(self, place: int) -> Leg:
        return replace(self._leg, parameters=to_parameters(replace(self._nodes, position=place)))

    def step(self, core: SenderCore, now: float) -> float:
        """Digest what the chain carries, and take what it tells. Raises SourceChangedError."""
        if self._source is None:
            self._begin(core)
        self._take_events(core)
        busy = self._reader.digest(core.layout.blocks, _BLOCKS_PER_STEP)
        if core.early or not busy or core.untold >= DIGESTS_TOLD:
            core.tell_digests()
        if busy and self._source is not None and self._reader.source.descriptor is None:
            self._source.wake()
        return 0 if busy else _IDLE_SECONDS

    def leave(self, core: SenderCore) -> bool:
        """What may be under way still goes through the chain; the next carrier begins behind it."""
        if self._source is None or self.over:
            return False
        layout = core.layout
        core.next_block = min(-(-self._under_way(core) // layout.block_size), layout.blocks)
        self._source.stop_at(core.next_block)
        self._left = True
        return True

    def _under_way(self, core: SenderCore) -> int:
        """Bytes before this one may have begun to go along the chain before it hears that it is left."""
        assert self._source is not None
        source = self._reader.source
        if source.descriptor is None:
            return source.available
        return max(self._source.begun, core.layout.offset(core.next_block)) + _UNDER_WAY_BYTES

    def drain(self, core: SenderCore) -> None:
        """Take what the chain tells while another carrier is at work."""
        self._take_events(core)

    def quit(self, reason: str) -> None:
        """The user ends the transfer."""
        if self._source is not None:
            self._source.quit(reason)

    def close(self) -> None:
        """End the chain, if it has not ended."""
        if self._source is not None:
            self._source.stop("the sender goes on by another way")
        if self._reception is not None:
            self._reception.close()
        else:
            self._entrance.listener.close()

    def _begin(self, core: SenderCore) -> None:
        layout, leg = core.layout, self._leg
        pipeline = pipeline_leg(self._at(0))
        self._source = PipelineSource(
            pipeline,
            UndigestedKept(self._reader.source, core),
            layout.block_size,
            self._note,
            by_name(self._entrance.dialer),
        )
        self._reception = Reception(self._entrance.listener, self._entrance.admission, leg, self._source.accept)
        self._source.start()

    def _note(self, event: PipelineEvent) -> None:
        self._events.put(event)
        self._wake()

    def _take_events(self, core: SenderCore) -> None:
        while not self._events.empty():
            match self._events.get():
                case Progress(position):
                    core.next_block = max(core.next_block, position // core.layout.block_size)
                    self._reached(position)
                case Lost(name, reason):
                    self._lose(core, name, reason)
                case Drained(position):
                    self._reached(position)
                case Reported(failed):
                    for name, reason in failed.items():
                        self._lose(core, name, reason)
                case Ended():
                    # What it did not bring is asked for in the end.
                    self._over = True

    def _lose(self, core: SenderCore, name: str, reason: str) -> None:
        # A chain that another carrier follows may be cut off; what is then missing is asked for in the end.
        if name in core.peers and not self._left:
            core.demote(name, reason)
