"""Parameters of a trees phase for its hosts."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.transports.trees.plan import PlacedTree, TreesPhase
from blast_transport.wire.fields import from_parameters
from blast_transport.wire.messages import Phase


@dataclass(frozen=True, slots=True)
class TreesParameters:
    """Parameters of a trees phase.

    `members`: the (name, host, port) of every host, the sender first; `trees`: (bits/s, the place of each receiver's
    parent) of every tree, -1 for hosts outside it; the receiving host is at `place`.
    """

    members: tuple[tuple[str, str, int], ...]
    trees: tuple[tuple[float, tuple[int, ...]], ...]
    place: int


def trees_phase(phase: Phase) -> TreesPhase:
    """Return the phase for its hosts. Raise RemoteProtocolError if its parameters are invalid."""
    parameters = from_parameters(TreesParameters, phase.parameters)
    trees = tuple(PlacedTree(rate, parents) for rate, parents in parameters.trees)
    return TreesPhase(
        phase.session, phase.number, phase.token, phase.first, parameters.members, trees, parameters.place
    )
