"""Multicast groups: ranges from which a session takes one, and the parameters of a phase that sends to one."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from blast_transport.base.errors import RemoteProtocolError, WrongInputError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.wire.fields import from_parameters
from blast_transport.wire.messages import Phase

_SOURCE_SPECIFIC = (ipaddress.ip_network("232.0.0.0/8"), ipaddress.ip_network("ff30::/12"))
"""RFC 4607, section 1."""
MAX_PARITY = 64
"""Parity segments of every coding group; the code depends on their number, as in blast_engine/blocks/src/coding.rs."""
_MAX_GROUP_BLOCKS = 16
"""Decoding a larger group delays the receiver's next read by more than a millisecond."""
_LOCAL, _SITE = ipaddress.IPv4Network("239.255.0.0/16"), ipaddress.IPv6Network("ff15::b1a5:0:0/96")


class GroupRange(FrozenRecord):
    """Groups that sessions may use, for either IP version; None: none of this version.

    By default those of the local scope for IPv4 (RFC 2365), and transient ones of a site for IPv6 (RFC 4291, section
    2.7).
    """

    ipv4: ipaddress.IPv4Network | None = _LOCAL
    ipv6: ipaddress.IPv6Network | None = _SITE

    def pick(self, source: str, bits: Callable[[int], int]) -> str:
        """Return a group for a sender at the address `source`; `bits(n)` returns n random bits.

        Raises WrongInputError if the range has no groups of the address's IP version.
        """
        version = ipaddress.ip_address(source).version
        groups = self.ipv4 if version == 4 else self.ipv6
        if groups is None:
            raise WrongInputError(
                f"--groups has no range of IPv{version}, the version of the address {source}; give one of each "
                "version, as in 239.255.0.0/16,ff15::/96"
            )
        return str(groups.network_address + bits(groups.max_prefixlen - groups.prefixlen))

    def is_source_specific(self, group: str) -> bool:
        """Return whether receivers may join this group only for a source."""
        address = ipaddress.ip_address(group)
        return any(address in specific for specific in _SOURCE_SPECIFIC if specific.version == address.version)


def parse_groups(text: str) -> GroupRange:
    """Parse a group or a range of groups, or one of each IP version, as 239.255.0.0/16,ff15::/96.

    Raises WrongInputError.

    >>> parse_groups("232.7.0.0/24").pick("10.0.0.1", lambda count: 5)
    '232.7.0.5'
    """
    ranges = [_parse_range(part.strip()) for part in text.split(",")]
    ipv4 = [network for network in ranges if isinstance(network, ipaddress.IPv4Network)]
    ipv6 = [network for network in ranges if isinstance(network, ipaddress.IPv6Network)]
    if len(ipv4) > 1 or len(ipv6) > 1:
        raise WrongInputError(f"{text} has several ranges of one IP version; give one range that has all groups")
    return GroupRange(ipv4[0] if ipv4 else None, ipv6[0] if ipv6 else None)


def _parse_range(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise WrongInputError(f"{text!r} is not a range of groups: {error}; give one such as 239.255.0.0/16") from None
    if not network.is_multicast:
        raise WrongInputError(f"{text} has addresses that are not groups; the ranges are 224.0.0.0/4 and ff00::/8")
    return network


class GroupParameters(FrozenRecord):
    """The data comes to `group`:`port` from `source`:`source_port`; `source_specific`: join only for this source.

    `coding`: blocks of a coding group; 0: the sender sends no parity segments.
    """

    group: str
    port: int
    source: str
    source_port: int
    source_specific: bool = False
    coding: int = 0


def group_parameters(phase: Phase) -> GroupParameters:
    """Return the parameters of this phase. Raise RemoteProtocolError if they are invalid."""
    found = from_parameters(GroupParameters, phase.parameters)
    if not all(0 < port < 1 << 16 for port in (found.port, found.source_port)):
        raise RemoteProtocolError(f"the {phase.transport} Phase has a port out of range")
    if not 0 <= found.coding <= _MAX_GROUP_BLOCKS:
        raise RemoteProtocolError(f"the {phase.transport} Phase has coding groups of {found.coding} blocks")
    try:
        group, source = ipaddress.ip_address(found.group), ipaddress.ip_address(found.source)
    except ValueError:
        raise RemoteProtocolError(f"the {phase.transport} Phase has an invalid address") from None
    if not group.is_multicast or source.is_multicast or group.version != source.version:
        raise RemoteProtocolError(f"the {phase.transport} Phase names no group, or no source of its IP version")
    return found
