"""UDP super-packets: one system call for many datagrams, cut and joined by the kernel (UDP_SEGMENT, UDP_GRO; Linux).

Whether a path takes them shows only when one is sent, so the first is a probe: where the kernel refuses, the same
datagrams go one at a time from then on.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

from blast_transport.base.errors import LightPathError, sentence

UDP_SEGMENT, UDP_GRO = 103, 104
"""Linux's numbers; Python has no names for them before 3.13."""

_REFUSALS = (errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.EOPNOTSUPP)


def take_super_packets(sock: socket.socket) -> bool:
    """Let the kernel hand over several datagrams at once; return false if it cannot."""
    try:
        sock.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
    except OSError:
        return False
    return True


def cut_super_packets(sock: socket.socket, size: int) -> bool:
    """Let the kernel split sent data into datagrams of `size` bytes; return False if it cannot."""
    try:
        sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
    except OSError:
        return False
    return True


def refused_datagrams(size: int, error: OSError) -> LightPathError:
    """Return the error for datagrams of `size` bytes that could not be sent."""
    # The kernel returns EPERM for packets that a firewall drops at the sender.
    remedy = "; permit UDP in the firewall of this host" if error.errno == errno.EPERM else ""
    return LightPathError(f"the interface rejects datagrams of {size} bytes: {sentence(error)}{remedy}")


class DatagramSender:
    """Sender of rows of datagrams of `size` bytes, of which the last may be shorter.

    `offload`: they go as super-packets.
    """

    def __init__(self, sock: socket.socket, size: int) -> None:
        self._socket = sock
        self.offload = cut_super_packets(sock, size)

    def send(self, parts: Sequence[memoryview]) -> None:
        """Send one datagram for each pair (header, payload) of `parts`. Raises LightPathError."""
        try:
            if self.offload:
                try:
                    self._socket.sendmsg(parts)
                    return
                except OSError as error:
                    if error.errno not in _REFUSALS:
                        raise
                    self._socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)
                    self.offload = False
            for position in range(0, len(parts), 2):
                self._socket.sendmsg(parts[position : position + 2])
        except OSError as error:
            raise refused_datagrams(sum(len(part) for part in parts[:2]), error) from error
