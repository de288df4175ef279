"""Free resources of the fabric as the matching models them: ports per rack and splitters per size, on each switch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sized
from dataclasses import dataclass

from algorithms.splitter_tree import choose_splitters


@dataclass(frozen=True, slots=True)
class Group:
    """A multicast group as a hyperedge.

    Parameters
    ----------
    name : hashable
        Identifies the group.
    racks : frozenset of str
        Racks that need an optical port, including the sender's.
    leaves : int
        Number of leaves of the splitter tree.
    volume : float
        The paper's weight: data times receivers, in any unit.
    tenant : str, optional
        The tenant whose allowance it uses; empty: none.
    """

    name: Hashable
    racks: frozenset[str]
    leaves: int
    volume: float
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The resources that serve a group.

    Parameters
    ----------
    switch : str
        Name of the optical switch.
    fan_out : tuple of int
        Fan-outs of the splitters on it.
    """

    switch: str
    fan_out: tuple[int, ...]


class Residual:
    """A view of free optical ports and splitters. A tree lies on one optical switch.

    Parameters
    ----------
    ports : mapping of str to mapping of str to int
        Switch to rack to the number of free ports, without racks that have none.
    splitters : mapping of str to mapping of int to sized
        Switch to fan-out to the free splitters.
    max_splitters_per_tree : int, optional
        The paper's k; None: no limit.
    allowance : mapping of str to int, optional
        Limited tenants to the number of splitters that they may still take; -1: no optical path at all.
    """

    def __init__(
        self,
        ports: Mapping[str, Mapping[str, int]],
        splitters: Mapping[str, Mapping[int, Sized]],
        max_splitters_per_tree: int | None = None,
        allowance: Mapping[str, int] | None = None,
    ) -> None:
        self._ports, self._splitters = ports, splitters
        self._max_splitters_of = max_splitters_per_tree
        self._allowance = allowance or {}

    def fit(self, group: Group) -> Choice | None:
        """Return the first switch that can serve a group now, with the splitters to take.

        Parameters
        ----------
        group : Group
            The group to serve.

        Returns
        -------
        Choice or None
            None if no switch can serve it.
        """
        limit = self._max_splitters(group.tenant)
        if limit is not None and limit < 0:
            return None
        for switch, free in self._ports.items():
            if free.keys() >= group.racks:
                sizes = {fan_out: len(found) for fan_out, found in self._splitters[switch].items()}
                fan_out = choose_splitters(group.leaves, sizes, limit)
                if fan_out is not None:
                    return Choice(switch, fan_out)
        return None

    def _max_splitters(self, tenant: str) -> int | None:
        limits = [n for n in (self._max_splitters_of, self._allowance.get(tenant)) if n is not None]
        return min(limits, default=None)
