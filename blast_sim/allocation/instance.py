"""A fabric and the requests that compete for it at one time: the input of `blast plan`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from algorithms.b_matching.feasibility import Choose, Feasibility, by_count
from algorithms.b_matching.group import CompetingGroup, directional_ports, shared_ports


@dataclass(frozen=True, slots=True)
class InstanceRequest:
    """One multicast, or unicast where there is one receiver. `weight` is the paper's volume: data times receivers."""

    name: str
    sender: int
    receivers: tuple[int, ...]
    weight: float

    @property
    def racks(self) -> tuple[int, ...]:
        """All of its racks, the sender's first."""
        return (self.sender, *self.receivers)


@dataclass(frozen=True, slots=True)
class Instance:
    """One optical switch with racks, splitters and requests.

    `ports[v]` optical ports at rack v, `pool` splitters by ways, at most `max_splitters_per_tree` in a tree (None: no
    limit). With `directional` ports a rack's transmitters and receivers serve different groups; with a `loop_leaf` the
    sender's own receiver is a leaf of its tree.
    """

    ports: tuple[int, ...]
    pool: Mapping[int, int]
    requests: tuple[InstanceRequest, ...]
    max_splitters_per_tree: int | None = None
    directional: bool = False
    loop_leaf: bool = False

    def groups(self) -> list[CompetingGroup]:
        """Return the requests as groups of the matching, in order, named by their index."""
        vertices = directional_ports(len(self.ports)) if self.directional else shared_ports
        return [
            CompetingGroup(
                place,
                vertices(request.sender, request.receivers),
                len(request.racks),
                self.leaves(request),
                request.weight,
            )
            for place, request in enumerate(self.requests)
        ]

    def leaves(self, request: InstanceRequest) -> int:
        """Return the number of leaves of the request's tree; a loop to a single receiver is a two-way circuit."""
        return len(request.receivers) + (self.loop_leaf and len(request.receivers) > 1)

    def feasibility(self, choose: Choose | None = None) -> Feasibility:
        """Return the idle fabric; `choose` replaces the counting rule, and with it `max_splitters_per_tree`."""
        budgets = self.ports * 2 if self.directional else self.ports
        return Feasibility(budgets, self.pool, choose or by_count(self.max_splitters_per_tree))
