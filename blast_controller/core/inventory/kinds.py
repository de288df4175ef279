"""Pieces of hardware that do for each other."""

from __future__ import annotations

from typing import NamedTuple

from blast_controller.core.model.fabric import OpticalPort, Splitter
from blast_controller.core.model.identifiers import SwitchId

Piece = OpticalPort | Splitter


class PieceKind(NamedTuple):
    """Interchangeable pieces of one switch: splitters with this fan-out, or (0) ports for an `end` of trees."""

    switch: SwitchId
    fan_out: int
    end: str


def kind_of(piece: Piece) -> PieceKind:
    """Return the kind of a piece."""
    if isinstance(piece, OpticalPort):
        return PieceKind(piece.switch, 0, piece.end)
    return PieceKind(piece.switch, piece.fan_out, "")
