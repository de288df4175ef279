"""Repairs that receivers request: by retransmission if several miss the same, to one receiver otherwise.

Receivers with the same losses report them at about the same time. A requested segment therefore waits for about the
time of a window; if only one receiver has requested it by then, that receiver gets a repair.
"""

from __future__ import annotations

from collections.abc import Collection

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.masks import mask_of, runs
from blast_transport.session.peers.peer import Peer

MAX_GATHER = 0.1
"""Seconds after which a repair that several receivers might share goes to one receiver: the light tree may be dark."""


class Repairs:
    """Repairs outstanding at `peers`. `shared` counts segments that were retransmitted for several receivers."""

    def __init__(self, peers: Collection[Peer]) -> None:
        self.shared = 0
        self._peers = peers
        # Blocks of which a receiver requested segments that others may miss: time of the first request, and the
        # receiver if only one requested them.
        self._asked: dict[int, tuple[float, Peer | None]] = {}

    def ask(self, peer: Peer, first: int, stop: int, block_segments: int) -> None:
        """Record that the receiver misses the segments from `first` to before `stop`."""
        block, index = divmod(first, block_segments)
        last, rest = divmod(stop, block_segments)
        if block == last:
            peer.retransmits.add(block, mask_of(index, rest - index))
            return
        if index:
            peer.retransmits.add(block, mask_of(index, block_segments - index))
            block += 1
        if block < last:
            peer.retransmits.add_whole([(block, last - block)])
        if rest:
            peer.retransmits.add(last, mask_of(0, rest))

    def await_others(self, peer: Peer, blocks: range, now: float) -> None:
        """Expect requests of other receivers for these blocks soon, of which `peer` misses segments."""
        for block in blocks:
            asked, alone = self._asked.get(block, (now, peer))
            self._asked[block] = (asked, peer if alone is peer else None)

    def take_shared(self, layout: BlockLayout, now: float, gather: float) -> tuple[int, int] | None:
        """Return (block, mask of segments) that several receivers miss, `gather` seconds after the first request.

        They are no longer outstanding. Return None if there is none yet.
        """
        while self._asked:
            block, (asked, alone) = next(iter(self._asked.items()))
            if now < asked + gather:
                break
            del self._asked[block]
            if alone is None and (shared := self._several(block) & layout.all_segments(block)):
                for peer in self._peers:
                    peer.retransmits.take(block, shared)
                self.shared += shared.bit_count()
                return block, shared
        return None

    def take(self, peer: Peer, layout: BlockLayout, now: float) -> list[Range]:
        """Return segments to repair at this receiver alone, in runs that end with a block: about one block."""
        found, size = list[Range](), 0
        while (
            size < layout.block_size and (block := peer.retransmits.first()) is not None and not self._waits(block, now)
        ):
            mask = peer.retransmits.take_all(block) & layout.all_segments(block)
            found += [(block * layout.block_segments + first, count) for first, count in runs(mask)]
            size += min(mask.bit_count() * layout.segment_size, layout.wire_length(block))
            peer.repairs += mask.bit_count()
        peer.repaired_bytes += size
        if peer.ready is not None and peer.ready.max_rate:
            peer.repair_at = max(peer.repair_at, now) + size * 8 / peer.ready.max_rate
        return found

    def clear(self) -> None:
        """Stop waiting for shared repairs, because the optical phase has ended."""
        self._asked.clear()

    def _waits(self, block: int, now: float) -> bool:
        """Return whether other receivers may still report losses of this block."""
        return block in self._asked and now < self._asked[block][0] + MAX_GATHER

    def _several(self, block: int) -> int:
        once = shared = 0
        for peer in self._peers:
            mask = peer.retransmits.mask(block)
            shared |= once & mask
            once |= mask
        return shared
