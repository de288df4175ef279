"""What the nodes of a leg along a pipeline are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg
from blast_transport.wire.fields import from_parameters
from blast_transport.wire.messages import Leg


@dataclass(frozen=True, slots=True)
class PipelineParameters:
    """The data goes along `chain`, the (name, host, port) of every node in order, the sender first; we are at
    `position`. A node that takes fewer than `slowest_rate` bytes/s is excluded; 0: none is.
    """

    chain: tuple[tuple[str, str, int], ...]
    position: int
    slowest_rate: float = 0.0


def pipeline_leg(leg: Leg) -> PipelineLeg:
    """The leg as its nodes want it. Raises RemoteProtocolError if no sender may say this, WrongInputError."""
    found = from_parameters(PipelineParameters, leg.parameters)
    if any(not 0 <= port < 1 << 16 for _, _, port in found.chain):
        raise RemoteProtocolError("Leg has a port out of range")
    if not 0 <= found.position < len(found.chain):
        raise RemoteProtocolError("Leg names a chain without a place for us")
    chain = tuple(Member(*member) for member in found.chain)
    return PipelineLeg(
        leg.session, leg.number, leg.token, leg.first, chain, found.position, slowest_rate=found.slowest_rate
    )
