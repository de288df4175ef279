"""Erasure coding of repairs: parity segments of a coding group, which repair different losses of many receivers.

A receiver that misses n segments of a group needs any n parity segments of it. Some follow each group before anyone
asks: as many as some receiver has needed in each of the latest groups, so that hardly any is sent in vain.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection

from blast_transport.blocks.layout import BlockLayout
from blast_transport.session.peers.peer import Peer
from blast_transport.transports.sending import ParityRun
from blast_transport.wire.groups import MAX_PARITY

_FORESEEN_GROUPS = 8
"""Groups whose least need is foreseen for the next ones: a single one without losses ends parity in advance."""
_FORESEEN_SECONDS = 1.0
"""Time without requests after which none is foreseen."""
_TRUSTED_REQUESTS = 2
"""Requests for a group that are answered in view of the parity sent before: a late receiver has got none of it."""


class GroupCoding:
    """Parity of groups of `blocks` blocks; 0: without parity, and a group is one block."""

    def __init__(self, blocks: int = 0) -> None:
        self.enabled, self.blocks = blocks > 0, max(1, blocks)
        # Parity segments of each group that were sent, and how often: a byte each for 8 blocks, of which each has a
        # digest of 16 bytes.
        self._sent, self._times = bytearray(), bytearray()
        # The next group to follow with parity. Segments that the latest groups needed, up to the group `_asked`, which
        # was requested at that time.
        self._next, self._asked, self._asked_at = 0, -1, -math.inf
        self._needs: deque[int] = deque(maxlen=_FORESEEN_GROUPS)

    def group(self, block: int) -> int:
        """Return the group of this block."""
        return block // self.blocks

    def members(self, group: int, layout: BlockLayout) -> range:
        """Return the blocks of this group."""
        return range(group * self.blocks, min((group + 1) * self.blocks, layout.blocks))

    def foresee(self, stop: int, layout: BlockLayout, now: float) -> ParityRun | None:
        """Return parity for a group before the block `stop` that has no request yet, None if none is foreseen."""
        while self.enabled and self._next * self.blocks < min(stop, layout.blocks):
            group = self._next
            if self.members(group, layout).stop > stop:
                break
            self._next += 1
            fresh = len(self._needs) == _FORESEEN_GROUPS and now < self._asked_at + _FORESEEN_SECONDS
            count = min(*self._needs, MAX_PARITY) if fresh else 0
            if count and not self._first(group):
                self._sent[group] = count
                return ParityRun(group, 0, count)
        return None

    def take(self, group: int, peers: Collection[Peer], layout: BlockLayout, now: float) -> ParityRun | None:
        """Return parity that repairs the requested losses in this group, which are no longer outstanding.

        Return None if retransmissions need no more segments.
        """
        if not self.enabled:
            return None
        first, blocks = self._first(group), self.members(group, layout)
        segments = sum(map(layout.segments, blocks))
        served, needed, union = list[Peer](), 0.0, [0] * len(blocks)
        for peer in peers:
            masks = self._losses(peer, blocks, layout)
            missing = _count(masks)
            if 0 < missing <= MAX_PARITY - first:
                served.append(peer)
                needed = max(needed, self._need(group, missing, segments))
                union = [one | other for one, other in zip(union, masks, strict=True)]
        if _count(union) <= needed:
            return None
        self._note(group, max(_count(self._losses(peer, blocks, layout)) for peer in served), now)
        for peer in served:
            for block in blocks:
                peer.retransmits.take_all(block)
        # Of the parity, the same share is lost as of the group.
        stop = min(MAX_PARITY, first + math.ceil(needed) + round(needed * needed / segments))
        self._sent[group] = stop
        return ParityRun(group, first, stop)

    def _need(self, group: int, missing: int, segments: int) -> float:
        """Return the parity segments that a receiver needs which misses this many `segments` of the group.

        It has got what was sent before, but for its losses and a standard deviation of them.
        """
        sent, share = self._sent[group], missing / segments
        if self._times[group] >= _TRUSTED_REQUESTS:
            return missing
        return max(1.0, missing - max(0.0, sent * (1 - share) - math.sqrt(sent * share)))

    def _note(self, group: int, missing: int, now: float) -> None:
        """Note what a group needed when it was first requested; groups that were left out needed nothing."""
        if not self._times[group] and group >= self._asked:
            self._needs.extend([0] * min(_FORESEEN_GROUPS, group - self._asked - 1))
            self._needs.append(missing)
            self._asked, self._asked_at = group, now
        self._times[group] = min(self._times[group] + 1, _TRUSTED_REQUESTS)

    def _losses(self, peer: Peer, blocks: range, layout: BlockLayout) -> list[int]:
        """Return masks of the segments that this receiver misses, if it keeps up and can use parity."""
        if peer.active and peer.ready is not None and peer.ready.coding and peer.retransmits:
            return [peer.retransmits.mask(block) & layout.all_segments(block) for block in blocks]
        return []

    def _first(self, group: int) -> int:
        """Return the first parity segment that was not sent yet."""
        for counts in (self._sent, self._times):
            counts.extend(bytes(max(0, group + 1 - len(counts))))
        return self._sent[group]


def _count(masks: Collection[int]) -> int:
    return sum(mask.bit_count() for mask in masks)
