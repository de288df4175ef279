"""Sockets on the light path, and what the kernel knows of its interface. Linux only."""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct

from blast_transport.base.errors import LightPathError, WrongInputError, sentence

_SIOCGIFCONF = 0x8912
_SIOCGIFMTU = 0x8921
_IFREQ = struct.Struct("16s16s8x")
_MAX_ADDRESSES = 4096
"""The kernel fills the table as far as it reaches."""
_SO_RCVBUFFORCE = 33
"""Of Linux; the socket module lacks it."""
_IP_MULTICAST_ALL = 49
_RECEIVE_BUFFER = 8 << 20
"""A receiver that does not run for 6 ms at 10 Gbit/s loses no datagram."""
_TTL = 1
"""Light trees have no router."""


def interface_mtu(address: str) -> int:
    """Return the MTU in bytes of the interface with this IPv4 address. Raise WrongInputError if none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        table = array.array("B", bytes(_IFREQ.size * _MAX_ADDRESSES))
        location, _ = table.buffer_info()
        request = struct.pack("iP", len(table), location)
        used, _ = struct.unpack("iP", fcntl.ioctl(probe.fileno(), _SIOCGIFCONF, request))
        packed = _packed(address)
        for name, socket_address in _IFREQ.iter_unpack(table.tobytes()[:used]):
            if socket_address[4:8] == packed:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFMTU, struct.pack("16si20x", name, 0))
                return int(struct.unpack("16si20x", answer)[1])
    raise WrongInputError(f"no interface has the address {address}; give one that `ip address` shows")


def check_group(group: str, port: int) -> None:
    """Raise WrongInputError unless this is a valid multicast destination."""
    if not ipaddress.IPv4Address(_packed(group)).is_multicast:
        raise WrongInputError(f"{group} is not a multicast group; the range is 224.0.0.0/4")
    if not 0 < port < 1 << 16:
        raise WrongInputError(f"{port} is not a UDP port; the range is 1 to 65535")


def open_sender_socket(interface_address: str, group: str, port: int) -> socket.socket:
    """Open a UDP socket connected to the group that sends by the interface with this address.

    Raises WrongInputError if the group is none, LightPathError if the interface cannot be used.
    """
    check_group(group, port)
    interface = _packed(interface_address)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _TTL)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        # Bound, because the ToR's rule admits only the sender's own address.
        sock.bind((interface_address, 0))
        sock.connect((group, port))
    except OSError as error:
        sock.close()
        raise LightPathError(f"cannot send to {group}:{port} by {interface_address}: {sentence(error)}") from error
    return sock


def open_group_socket(interface_address: str, group: str, port: int) -> socket.socket:
    """Open a non-blocking UDP socket that has joined only this group on this interface.

    Raise OSError, and WrongInputError for an invalid address.
    """
    membership = _packed(group) + _packed(interface_address)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        _enlarge_receive_buffer(sock)
        sock.bind((group, port))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    except OSError:
        sock.close()
        raise
    return sock


def receive_buffer() -> int:
    """Return the bytes of an optical socket's receive buffer, overhead included."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        _enlarge_receive_buffer(probe)
        return probe.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def _enlarge_receive_buffer(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
    except PermissionError:
        # Without CAP_NET_ADMIN the kernel cuts this to net.core.rmem_max.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)


def _packed(address: str) -> bytes:
    try:
        return socket.inet_aton(str(ipaddress.IPv4Address(address)))
    except ipaddress.AddressValueError as error:
        raise WrongInputError(f"{address!r} is not an IPv4 address") from error
