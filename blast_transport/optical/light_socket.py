"""Datagrams of one session as they arrive by light, a super-packet at a time.

The kernel scatters what it hands over: headers into one row of memory, payloads into another, so that the payload of a
whole block lies in one piece, ready to be digested and written.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

from blast_transport.blocks.layout import Layout
from blast_transport.optical.offload import take_super_packets
from blast_transport.wire.datagram import HEADER

Address = tuple[str, int]
"""(IPv4 address, UDP port)."""

Run = Callable[[int, int, memoryview], None]
"""(first segment, number of segments, their payload in one piece)."""

_READS_PER_WAKE = 32
_TRUNCATED = int(socket.MSG_TRUNC)


class LightSocket:
    """A joined group socket that hears one session of the sender at `source`, and nobody else."""

    def __init__(self, sock: socket.socket, source: Address, session: int, layout: Layout) -> None:
        self.socket = sock
        self._source = source
        # The kernel drops what others send at once. It wants a route for that, which light alone does not need.
        with suppress(OSError):
            sock.connect(source)
        self.offload = take_super_packets(sock)
        self._refused = 0
        self.receive_buffer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        self._session = session
        count, size = layout.block_segments, layout.segment_size
        self._datagram = HEADER.size + size
        headers = memoryview(bytearray(count * HEADER.size))
        self._payload = memoryview(bytearray(count * size))
        self._headers = headers
        self._parts = []
        for index in range(count):
            self._parts.append(headers[index * HEADER.size : (index + 1) * HEADER.size])
            self._parts.append(self._payload[index * size : (index + 1) * size])
        self._unpack = [struct.Struct(f"<{2 * number}Q").unpack_from for number in range(count + 1)]
        self._sessions = [(session,) * number for number in range(count + 1)]
        self._count = count

    def close(self) -> None:
        """Leave the group."""
        self.socket.close()

    def take_refused(self) -> int:
        """How many datagrams were none of ours since the last call."""
        refused, self._refused = self._refused, 0
        return refused

    def read(self, take: Run) -> int:
        """Hand over what has arrived, but not for ever; how many bytes. What is not ours is counted and dropped."""
        receive, parts, size = self.socket.recvmsg_into, self._parts, 0
        for _ in range(_READS_PER_WAKE):
            try:
                length, _, flags, source = receive(parts)
            except BlockingIOError:
                return size
            except ConnectionError:
                continue
            count = -(-length // self._datagram)
            if source != self._source:
                self._refused += count
                continue
            if flags & _TRUNCATED or length - (count - 1) * self._datagram <= HEADER.size or count == 0:
                self._refused += 1
                continue
            values = self._unpack[count](self._headers)
            segments = values[1::2]
            # A header's first eight bytes are the session and no flag.
            if values[0::2] != self._sessions[count]:
                self._refused += count
                continue
            payload = self._payload[: length - count * HEADER.size]
            size += len(payload)
            if segments[-1] - segments[0] == count - 1 and segments == tuple(range(segments[0], segments[0] + count)):
                take(segments[0], count, payload)
            else:
                self._in_runs(segments, payload, take)
        return size

    def _in_runs(self, segments: tuple[int, ...], payload: memoryview, take: Run) -> None:
        size, begin = self._datagram - HEADER.size, 0
        ends = [end for end, (one, other) in enumerate(pairwise(segments), 1) if other - one != 1]
        for end in (*ends, len(segments)):
            take(segments[begin], end - begin, payload[begin * size : end * size])
            begin = end
