"""Multicast groups as hyper-edges over port vertices, with sets of vertices as bits of one integer.

With one count of ports a rack, rack v is vertex v. With directional ports (a ToR's transmitter and its receiver are
separate fibers) its transmitter is vertex v and its receiver vertex `racks` + v, so that one rack can send to one
group while it receives from another. Nothing else in the matching knows the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """A group that competes for light.

    `ports` has a bit for every port vertex that it takes, `racks` says how many racks it joins (the sender's
    included: the paper's r), `leaves` how many ends its splitter tree must have, `weight` what serving it is worth
    (the paper's volume: data times receivers, any unit), `tenant` whose allowance it uses.
    """

    name: Hashable
    ports: int
    racks: int
    leaves: int
    weight: float
    tenant: str = ""


Vertices = Callable[[int, Iterable[int]], int]
"""(sender's rack, the other racks) -> bits of the port vertices that their group takes."""


def shared_ports(sender: int, receivers: Iterable[int]) -> int:
    """Vertices where a rack's port counts alike for sending and receiving, as in the paper.

    Parameters
    ----------
    sender : int
        The sender's rack, from 0.
    receivers : iterable of int
        The other racks.

    Returns
    -------
    int
        A bit for each vertex.

    Examples
    --------
    >>> bin(shared_ports(0, [2, 3]))
    '0b1101'
    """
    return bits((sender, *receivers))


def directional_ports(racks: int) -> Vertices:
    """Vertices where each of `racks` racks has transmitters (v) and receivers (racks + v) of their own.

    Parameters
    ----------
    racks : int
        How many the fabric has.

    Returns
    -------
    Vertices
        (sender's rack, the other racks) -> bits of the vertices that they take.

    Examples
    --------
    >>> members(directional_ports(4)(0, [2, 3]))
    [0, 6, 7]
    """
    return lambda sender, receivers: 1 << sender | bits(receivers) << racks


def bits(vertices: Iterable[int]) -> int:
    """The set as bits of an integer.

    Parameters
    ----------
    vertices : iterable of int
        Numbers from 0.

    Returns
    -------
    int
        Bit v is set for each vertex v. O(largest vertex / 64) for each of them.

    Examples
    --------
    >>> bits([0, 3])
    9
    """
    mask = 0
    for vertex in vertices:
        mask |= 1 << vertex
    return mask


def members(mask: int) -> list[int]:
    """The set's vertices, lowest first.

    Parameters
    ----------
    mask : int
        A bit for each vertex, as `bits` makes it.

    Returns
    -------
    list of int
        In O(vertices * largest vertex / 64).

    Examples
    --------
    >>> members(9)
    [0, 3]
    """
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
