"""A job: one part of a request (the receivers of one light tree) as policies see it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from algorithms.b_matching.group import CompetingGroup, Vertices, members

MAX_PARTS = 4
"""Maximum number of parts of a request: each makes the sender send the whole volume once more."""

PartName = tuple[Hashable, int]
"""(request, number of the part)"""


@dataclass(frozen=True, slots=True)
class Job:
    """A part that waits for optical resources, or holds them.

    Parameters
    ----------
    request : hashable
        The request that the part belongs to.
    group : Group
        Its demand on a switch.
    sender : int
        The bit of its sender's port vertex.
    remaining : float
        Seconds at line rate still to send, without set-up; only a guess if the size is not `known`.
    submitted_at : float
        Time of the request in seconds, on the clock of `now`.
    number : int, optional
        Number of the part within its request.
    attained : float, optional
        Seconds at line rate already sent, without set-up.
    known : bool, optional
        True if the size of the transfer is known.
    deadline : float, optional
        In seconds, on the clock of `now`; None: there is no deadline.
    priority : int, optional
        A higher priority goes first, whatever its size.
    weight : float, optional
        Multiplies the cost of its delay.
    parts : int, optional
        Maximum number of parts into which it may be split (1: not at all), numbered from its own number on.
    may_pause : bool, optional
        False if it runs until it is done once it has started.
    continues : bool, optional
        True while it holds the resources that it requests, so that it needs no set-up.
    """

    request: Hashable
    group: CompetingGroup
    sender: int
    remaining: float
    submitted_at: float
    number: int = 0
    attained: float = 0.0
    known: bool = True
    deadline: float | None = None
    priority: int = 0
    weight: float = 1.0
    parts: int = MAX_PARTS
    may_pause: bool = True
    continues: bool = False

    @property
    def name(self) -> PartName:
        """The name of this part in events."""
        return self.request, self.number

    @property
    def size(self) -> float:
        """Seconds of the whole transfer at line rate."""
        return self.remaining + self.attained

    @property
    def receivers(self) -> int:
        """The bits of its receivers' port vertices."""
        return self.group.ports & ~self.sender

    def after(self, seconds: float) -> Job:
        """Return the job after more data has been sent.

        Parameters
        ----------
        seconds : float
            Seconds of data at line rate.

        Returns
        -------
        Job
            With the same `remaining` if the size is not known.
        """
        left = self.remaining - seconds if self.known else self.remaining
        return replace(self, remaining=max(0.0, left), attained=self.attained + seconds)

    def only(self, receivers: int) -> Job:
        """Return the part of this job that serves some of its receivers.

        Parameters
        ----------
        receivers : int
            Bits of the port vertices of these receivers.

        Returns
        -------
        Job
            With a narrower group, whose weight is in proportion to its receivers.
        """
        group = self.group
        here, all_of_them = receivers.bit_count(), self.receivers.bit_count()
        narrower = CompetingGroup(
            group.name,
            self.sender | receivers,
            group.racks - all_of_them + here,
            group.leaves - all_of_them + here,
            group.weight * here / all_of_them,
            group.tenant,
        )
        return replace(self, group=narrower)


def multicast(
    request: Hashable, racks: Sequence[int], seconds: float, vertices: Vertices, tenant: str = ""
) -> CompetingGroup:
    """Return the group of a multicast from the first of `racks` to the others.

    Its weight is the paper's volume, data times receivers, with racks as receivers and seconds as data.

    Parameters
    ----------
    request : hashable
        The group's name.
    racks : sequence of int
        The sender's rack first.
    seconds : float
        Duration of the data at line rate.
    vertices : Vertices
        `group.shared_ports`, or the result of `group.directional_ports`.
    tenant : str, optional
        The tenant whose allowance it uses.

    Returns
    -------
    Group
        Weight in rack-seconds.

    Examples
    --------
    >>> from algorithms.b_matching.group import shared_ports
    >>> multicast("a", [0, 2, 3], 1.5, shared_ports)
    CompetingGroup(name='a', ports=13, racks=3, leaves=2, weight=3.0, tenant='')
    """
    leaves = len(racks) - 1
    return CompetingGroup(request, vertices(racks[0], racks[1:]), len(racks), leaves, seconds * leaves, tenant)


def racks_of(ports: int, racks: int) -> list[int]:
    """Return the racks of a set of port vertices, by either numbering of `group`.

    Parameters
    ----------
    ports : int
        A bit for each vertex.
    racks : int
        Number of racks of the fabric.

    Returns
    -------
    list of int
        In the order of the vertices.

    Examples
    --------
    >>> racks_of(0b1100_0001, 4)
    [0, 2, 3]
    """
    return [vertex % racks for vertex in members(ports)]
