"""Reception of one session's datagrams, a super-packet at a time.

The kernel scatters the data: headers into one row of memory, payloads into another, so that the payload of a whole
block is contiguous, ready to be digested and written.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise

from blast_transport.blocks.layout import BlockLayout
from blast_transport.datagrams.offload import take_super_packets
from blast_transport.store.blocks.block_assembly import Piece
from blast_transport.wire.datagram import HEADER

Address = tuple[str, int]
"""(IP address, UDP port)."""

_READS_PER_WAKE = 16
"""A limit, so that the sender gets a credit before its window is exhausted."""
_ROWS = 8
"""Super-packets that are read before they are processed: as many as stay in a processor's cache."""
_TRUNCATED = int(socket.MSG_TRUNC)


class GroupSocket:
    """Socket of a joined group that receives one session of the sender at `source`, and nothing else."""

    def __init__(self, sock: socket.socket, source: Address, session: int, layout: BlockLayout) -> None:
        self.socket = sock
        self._source = source
        self.offload = listen_to(sock, source)
        self._refused = 0
        count, size = layout.block_segments, layout.segment_size
        self._datagram = HEADER.size + size
        self._rows = [_row(count, size) for _ in range(_ROWS)]
        self._unpack = [struct.Struct(f"<{2 * number}Q").unpack_from for number in range(count + 1)]
        self._sessions = [(session,) * number for number in range(count + 1)]

    def close(self) -> None:
        """Leave the group."""
        self.socket.close()

    def take_refused(self) -> int:
        """Return the number of foreign datagrams since the last call."""
        refused, self._refused = self._refused, 0
        return refused

    def read(self, take: Callable[[list[Piece]], None]) -> tuple[int, bool]:
        """Pass received segments to `take`, up to a limit; return their bytes, and whether that was all.

        Foreign datagrams are counted and dropped.
        """
        size, empty = 0, False
        for _ in range(_READS_PER_WAKE // _ROWS):
            pieces, empty = self._gather()
            if pieces:
                take(pieces)
                size += sum(len(payload) for _, _, payload in pieces)
            if empty:
                break
        return size, empty

    def _gather(self) -> tuple[list[Piece], bool]:
        """Return received segments, in a row of memory for each super-packet, and whether that was all."""
        receive, pieces = self.socket.recvmsg_into, list[Piece]()
        for headers, payloads, parts in self._rows:
            try:
                length, _, flags, source = receive(parts)
            except BlockingIOError:
                return pieces, True
            except ConnectionError:
                continue
            count = -(-length // self._datagram)
            if source[:2] != self._source:
                self._refused += count
                continue
            if flags & _TRUNCATED or length - (count - 1) * self._datagram <= HEADER.size or count == 0:
                self._refused += 1
                continue
            values = self._unpack[count](headers)
            segments = values[1::2]
            # A header's first eight bytes are the session and no flag.
            if values[0::2] != self._sessions[count]:
                self._refused += count
                continue
            payload = payloads[: length - count * HEADER.size]
            if segments[-1] - segments[0] == count - 1 and segments == tuple(range(segments[0], segments[0] + count)):
                pieces.append((segments[0], count, payload))
            else:
                pieces += self._in_runs(segments, payload)
        return pieces, False

    def _in_runs(self, segments: tuple[int, ...], payload: memoryview) -> Iterator[Piece]:
        size, begin = self._datagram - HEADER.size, 0
        ends = [end for end, (one, other) in enumerate(pairwise(segments), 1) if other - one != 1]
        for end in (*ends, len(segments)):
            yield segments[begin], end - begin, payload[begin * size : end * size]
            begin = end


def listen_to(sock: socket.socket, source: Address) -> bool:
    """Restrict the socket to `source` as far as the kernel can; return whether it combines datagrams."""
    # The kernel then drops datagrams of other senders. This needs a route, which multicast itself does not.
    with suppress(OSError):
        sock.connect(source)
    return take_super_packets(sock)


def _row(count: int, size: int) -> tuple[memoryview, memoryview, list[memoryview]]:
    """Return memory for headers and payloads of `count` segments, and both alternating, as the kernel fills them."""
    headers, payloads, parts = memoryview(bytearray(count * HEADER.size)), memoryview(bytearray(count * size)), []
    for index in range(count):
        parts.append(headers[index * HEADER.size : (index + 1) * HEADER.size])
        parts.append(payloads[index * size : (index + 1) * size])
    return headers, payloads, parts
