"""What the hosts of a phase along trees are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.transports.trees.plan import PlacedTree, TreesPhase
from blast_transport.wire.fields import from_parameters
from blast_transport.wire.messages import Phase


@dataclass(frozen=True, slots=True)
class TreesParameters:
    """The (name, host, port) of every host, the sender first; (bits/s, the place of each receiver's parent) of every
    tree, -1 where it does not enter; we are at `place`.
    """

    members: tuple[tuple[str, str, int], ...]
    trees: tuple[tuple[float, tuple[int, ...]], ...]
    place: int


def trees_phase(phase: Phase) -> TreesPhase:
    """The phase as its hosts want it. Raises RemoteProtocolError if no sender may say this."""
    said = from_parameters(TreesParameters, phase.parameters)
    trees = tuple(PlacedTree(rate, parents) for rate, parents in said.trees)
    return TreesPhase(phase.session, phase.number, phase.token, phase.first, said.members, trees, said.place)
