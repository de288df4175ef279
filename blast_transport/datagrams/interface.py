"""Sockets for multicast groups, and what the kernel knows of its interfaces. Linux only."""

from __future__ import annotations

import array
import fcntl
import ipaddress
import socket
import struct
from pathlib import Path

from blast_transport.base.errors import LightPathError, WrongInputError, sentence

_SIOCGIFCONF = 0x8912
_SIOCGIFMTU = 0x8921
_IFREQ = struct.Struct("16s16s8x")
_MAX_ADDRESSES = 4096
"""The kernel fills the table as far as it reaches."""
_IPV6_ADDRESSES = Path("/proc/net/if_inet6")
_SO_RCVBUFFORCE = 33
"""Of Linux; the socket module lacks it."""
_IP_MULTICAST_ALL, _IPV6_MULTICAST_ALL = 49, 29
_IP_ADD_SOURCE_MEMBERSHIP, _MCAST_JOIN_SOURCE_GROUP = 39, 46
_SOURCE_GROUP = struct.Struct("I4x128s128s")
"""The kernel's group_source_req: interface, group, source (RFC 3678, section 5)."""
_SOCKADDR_IN6 = struct.Struct("=HHI16sI")
_IPV4_BYTES = 4
"""Length of an address of IPv4."""
_RECEIVE_BUFFER = 8 << 20
"""A receiver that does not run for 6 ms at 10 Gbit/s loses no datagram."""
_DSCP_SHIFT = 2
"""The lower bits of the byte are those of ECN (RFC 3168)."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def interface_mtu(address: str) -> int:
    """Return the MTU in bytes of the interface with this address. Raise WrongInputError if none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        answer = fcntl.ioctl(probe.fileno(), _SIOCGIFMTU, struct.pack("16si20x", interface_of(address).encode(), 0))
        return int(struct.unpack("16si20x", answer)[1])


def check_optical_interface(address: str) -> None:
    """Raise WrongInputError unless an interface has this address of IPv4; the groups of grants are of IPv4, too."""
    if _parsed(address).version != 4:
        raise WrongInputError(f"{address} is not an IPv4 address, and the optical transport uses IPv4")
    interface_of(address)


def interface_of(address: str) -> str:
    """Return the name of the interface with this address. Raise WrongInputError if none has it."""
    parsed = _parsed(address)
    names = _ipv4_interfaces() if isinstance(parsed, ipaddress.IPv4Address) else _ipv6_interfaces()
    try:
        return names[parsed.packed]
    except KeyError:
        raise WrongInputError(f"no interface has the address {address}; give one that `ip address` shows") from None


def _ipv4_interfaces() -> dict[bytes, str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        table = array.array("B", bytes(_IFREQ.size * _MAX_ADDRESSES))
        location, _ = table.buffer_info()
        used, _ = struct.unpack(
            "iP", fcntl.ioctl(probe.fileno(), _SIOCGIFCONF, struct.pack("iP", len(table), location))
        )
        # A later entry is an alias of an interface; the first one has its name.
        entries = reversed(list(_IFREQ.iter_unpack(table.tobytes()[:used])))
        return {address[4:8]: name.rstrip(b"\0").decode() for name, address in entries}


def _ipv6_interfaces() -> dict[bytes, str]:
    try:
        lines = _IPV6_ADDRESSES.read_text().splitlines()
    except OSError:
        return {}
    return {bytes.fromhex(fields[0]): fields[5] for fields in map(str.split, lines)}


def check_group(group: str, port: int) -> None:
    """Raise WrongInputError unless this is a valid multicast destination."""
    if not _parsed(group).is_multicast:
        raise WrongInputError(f"{group} is not a multicast group; the ranges are 224.0.0.0/4 and ff00::/8")
    if not 0 < port < 1 << 16:
        raise WrongInputError(f"{port} is not a UDP port; the range is 1 to 65535")


def open_sender_socket(interface_address: str, group: str, port: int, *, hops: int = 1, dscp: int = 0) -> socket.socket:
    """Open a UDP socket connected to the group that sends by the interface with this address.

    Datagrams pass at most `hops - 1` routers; `dscp` is their class of service. Raises WrongInputError if the group is
    none, or of another IP version than the address, LightPathError if the interface cannot be used.
    """
    check_group(group, port)
    family = _family_of(interface_address, group)
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        index = _index_of(interface_address)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _parsed(interface_address).packed)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, hops)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << _DSCP_SHIFT)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << _DSCP_SHIFT)
        # Bound, because the ToR's rule, or a source-specific membership, admits only the sender's own address.
        sock.bind(_socket_address(interface_address, 0, index))
        sock.connect(_socket_address(group, port, index))
    except (OSError, WrongInputError) as error:
        sock.close()
        failure = f"cannot send to {group} port {port} by {interface_address}: {sentence(error)}"
        if isinstance(error, OSError):
            failure += f"; check that `ip address` shows {interface_address}, on an interface that is up"
        raise LightPathError(failure) from error
    return sock


def open_group_socket(interface_address: str, group: str, port: int, source: str | None = None) -> socket.socket:
    """Open a non-blocking UDP socket that has joined only this group on this interface.

    With a `source` the membership is specific to datagrams from there (RFC 4607). Raise OSError, and WrongInputError
    for an invalid address.
    """
    family = _family_of(interface_address, group)
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        index = _index_of(interface_address)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MULTICAST_ALL, 0)
        _enlarge_receive_buffer(sock)
        sock.bind(_socket_address(group, port, index))
        sock.setsockopt(*_membership(interface_address, group, source))
    except (OSError, WrongInputError):
        sock.close()
        raise
    return sock


def _membership(interface_address: str, group: str, source: str | None) -> tuple[int, int, bytes]:
    """Return the socket option of a membership."""
    to, by, only = (_parsed(address).packed for address in (group, interface_address, source or group))
    if len(to) == _IPV4_BYTES:
        if source is None:
            return socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, to + by
        return socket.IPPROTO_IP, _IP_ADD_SOURCE_MEMBERSHIP, to + by + only
    index = _index_of(interface_address)
    if source is None:
        return socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, to + struct.pack("I", index)
    request = _SOURCE_GROUP.pack(index, *(_SOCKADDR_IN6.pack(socket.AF_INET6, 0, 0, one, 0) for one in (to, only)))
    return socket.IPPROTO_IPV6, _MCAST_JOIN_SOURCE_GROUP, request


def receive_buffer() -> int:
    """Return the bytes of a group socket's receive buffer, overhead included."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        _enlarge_receive_buffer(probe)
        return probe.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def _enlarge_receive_buffer(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
    except PermissionError:
        # Without CAP_NET_ADMIN the kernel cuts this to net.core.rmem_max.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)


def _index_of(address: str) -> int:
    """Return the index of the interface with this address; 0 for IPv4, whose options take the address itself."""
    return 0 if _parsed(address).version == 4 else socket.if_nametoindex(interface_of(address))


def _family_of(interface_address: str, group: str) -> socket.AddressFamily:
    version = _parsed(interface_address).version
    if version != _parsed(group).version:
        raise WrongInputError(
            f"the group {group} and the address {interface_address} have different IP versions; give a group of "
            f"version {version}"
        )
    return socket.AF_INET if version == 4 else socket.AF_INET6


def _socket_address(address: str, port: int, index: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """Return an address as sockets take it; the scope counts for addresses of a link only."""
    return (address, port) if _parsed(address).version == 4 else (address, port, 0, index)


def _parsed(address: str) -> IpAddress:
    try:
        return ipaddress.ip_address(address)
    except ValueError as error:
        raise WrongInputError(f"{address!r} is not an IP address") from error
