"""What receivers ask for once more, and which way it goes: by light if several miss it, to one alone otherwise.

Who misses the same says so at about the same time. So what somebody asks for waits for about the time of a window;
what only one has asked for by then is owed to that one.
"""

from __future__ import annotations

from collections.abc import Collection

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.layout import Layout
from blast_transport.blocks.masks import mask_of, runs
from blast_transport.session.peers.peer import Peer

MAX_GATHER = 0.1
"""Seconds after which a repair that might be shared goes to one receiver after all: the light may be gone."""


class Repairs:
    """Looks after what `peers` are owed. `shared` segments were repaired for several at once."""

    def __init__(self, peers: Collection[Peer]) -> None:
        self.shared = 0
        self._peers = peers
        # Blocks of which somebody has asked for segments that others may miss as well: since when, and who if only one.
        self._asked: dict[int, tuple[float, Peer | None]] = {}

    def ask(self, peer: Peer, first: int, stop: int, block_segments: int) -> None:
        """The receiver misses the segments from `first` to before `stop`."""
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
        """`peer` misses something of these; others may, and will say so soon."""
        for block in blocks:
            asked, alone = self._asked.get(block, (now, peer))
            self._asked[block] = (asked, peer if alone is peer else None)

    def take_shared(self, layout: Layout, now: float, gather: float) -> tuple[int, int] | None:
        """(block, mask of segments) that several receivers miss, `gather` seconds after the first asked for it.

        They are not owed any more. None: there is nothing such yet.
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

    def take(self, peer: Peer, layout: Layout, now: float) -> list[Range]:
        """Segments that are due to this receiver alone, in runs that end with a block: about as much as one block."""
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
        """There is no light any more."""
        self._asked.clear()

    def _waits(self, block: int, now: float) -> bool:
        """What is missing of this block may still turn out to be missing elsewhere."""
        return block in self._asked and now < self._asked[block][0] + MAX_GATHER

    def _several(self, block: int) -> int:
        once = shared = 0
        for peer in self._peers:
            mask = peer.retransmits.mask(block)
            shared |= once & mask
            once |= mask
        return shared
