"""Repairs that receivers request: by retransmission if several miss the same, to one receiver otherwise.

Receivers with the same losses report them at about the same time. A requested segment therefore waits for about the
time of a window; if only one receiver has requested it by then, that receiver gets a repair. With erasure coding, the
requests for a coding group wait until that time has passed since the whole group was sent.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from blast_transport.blocks.block_map import Range
from blast_transport.blocks.layout import BlockLayout
from blast_transport.blocks.masks import mask_of, runs
from blast_transport.session.peers.group_coding import GroupCoding
from blast_transport.session.peers.peer import Peer
from blast_transport.transports.sending import ParityRun

MAX_GATHER = 0.1
"""Seconds after which a repair that several receivers might share goes to one receiver: the light tree may be dark."""
_MAX_PAUSE = 0.25
"""The same for a coding group, after the last block was sent: until then, the rest of the group may still be sent."""


@dataclass(slots=True)
class _GroupRequest:
    """A request for segments of a coding group since `asked`: answered at `due`, to `alone` if only that one asked."""

    asked: float
    due: float
    alone: Peer | None


class Repairs:
    """Repairs outstanding at `peers`. `shared` counts segments that were sent for several receivers.

    `coded`: the phase has erasure coding.
    """

    def __init__(self, peers: Collection[Peer]) -> None:
        self.shared = 0
        self._peers = peers
        self._coding = GroupCoding()
        # Coding groups, or blocks without coding, of which a receiver requested segments that others may miss.
        self._asked: dict[int, _GroupRequest] = {}
        # (block, mask) that several miss.
        self._due: deque[tuple[int, int]] = deque()
        # The blocks before this one have left, since that time.
        self._sent, self._sent_at = 0, -math.inf

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
        if blocks:
            peer.lossy = True
            for group in range(self._coding.group(blocks[0]), self._coding.group(blocks[-1]) + 1):
                request = self._asked.setdefault(group, _GroupRequest(now, now, peer))
                request.alone = peer if request.alone is peer else None

    def take_shared(
        self, layout: BlockLayout, now: float, gather: float, sent: int
    ) -> tuple[int, int] | ParityRun | None:
        """Return (block, mask of segments) that several receivers miss, or parity that repairs the losses of several.

        That is `gather` seconds after the first request, and after all blocks before `sent` include the coding group.
        These losses are no longer outstanding. Return None if there are none yet.
        """
        if sent > self._sent:
            self._sent, self._sent_at = sent, now
        if (parity := self._coding.foresee(sent, layout, now)) is not None:
            self.shared += parity.stop - parity.first
            return parity
        while not self._due and self._asked:
            group, request = next(iter(self._asked.items()))
            whole = self._coding.members(group, layout).stop <= sent
            if self.coded and not whole and self._is_kept(request, now):
                request.due = now
            if now < request.due + gather:
                return None
            del self._asked[group]
            # From parity of a group that was not sent, receivers would compute segments that were not sent.
            if whole and (parity := self._coding.take(group, self._peers, layout, now)) is not None:
                self.shared += parity.stop - parity.first
                return parity
            if request.alone is None:
                self._retransmit(group, layout)
        return self._due.popleft() if self._due else None

    def _retransmit(self, group: int, layout: BlockLayout) -> None:
        """Retransmit the segments that several receivers miss."""
        for block in self._coding.members(group, layout):
            if shared := self._several(block) & layout.all_segments(block):
                for peer in self._peers:
                    peer.retransmits.take(block, shared)
                self.shared += shared.bit_count()
                self._due.append((block, shared))

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

    def begin(self, group_blocks: int) -> None:
        """Begin a phase with coding groups of `group_blocks` blocks, 0: without."""
        self.clear()
        self._coding, self._sent = GroupCoding(group_blocks), 0

    def clear(self) -> None:
        """Stop waiting for shared repairs, because the phase has ended."""
        self._asked.clear()
        self._due.clear()

    @property
    def coded(self) -> bool:
        """Return whether the phase has erasure coding."""
        return self._coding.enabled

    def _waits(self, block: int, now: float) -> bool:
        """Return whether other receivers may still report losses of this block."""
        request = self._asked.get(self._coding.group(block))
        return request is not None and self._is_kept(request, now)

    def _is_kept(self, request: _GroupRequest, now: float) -> bool:
        """Return whether this request may still be answered for several receivers."""
        if self.coded:
            return now < max(request.asked, self._sent_at) + _MAX_PAUSE
        return now < request.asked + MAX_GATHER

    def _several(self, block: int) -> int:
        once = shared = 0
        for peer in self._peers:
            mask = peer.retransmits.mask(block)
            shared |= once & mask
            once |= mask
        return shared
