"""Multicast groups as hyperedges over port vertices, with sets of vertices as bits of one integer.

With one count of ports per rack, rack v is vertex v. With directional ports (a ToR's transmitter and its receiver are
separate fibers) its transmitter is vertex v and its receiver vertex `racks` + v, so that a rack can send to one group
while it receives from another. The rest of the matching does not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompetingGroup:
    """A group that competes for optical resources.

    Parameters
    ----------
    name : hashable
        Identifies the group in a selection.
    ports : int
        A bit for every port vertex that the group takes.
    racks : int
        Number of racks that it joins, including the sender's: the paper's r.
    leaves : int
        Number of leaves of its splitter tree.
    weight : float
        Value of serving it: the paper's volume (data times receivers), in any unit.
    tenant : str, optional
        The tenant whose allowance it uses; empty: none.
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
    """Return the vertices of a group if a rack's ports serve both directions, as in the paper.

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
    """Return the vertex function for `racks` racks with separate transmitters (v) and receivers (racks + v).

    Parameters
    ----------
    racks : int
        Number of racks of the fabric.

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
    """Return the set as bits of an integer.

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
    """Return the vertices of a set in ascending order.

    Parameters
    ----------
    mask : int
        A bit for each vertex, as returned by `bits`.

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
        bit = mask & -mask
        found.append(bit.bit_length() - 1)
        mask ^= bit
    return found
