"""Parameters of a pipeline phase for its nodes."""

from __future__ import annotations

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase, PipelineTimings
from blast_transport.wire.fields import from_parameters
from blast_transport.wire.messages import Phase
from blast_transport.wire.pipeline_bounds import (
    LARGEST_BUFFER,
    LONGEST_TIMEOUT,
    NODE_TIMEOUT,
    SHORTEST_TIMEOUT,
    SMALLEST_BUFFER,
)


class PipelineParameters(FrozenRecord):
    """Parameters of a pipeline phase.

    The data goes along `chain`, the (name, host, port) of every node in order, the sender first; the receiving node is
    at `position`. A node that accepts fewer than `slowest_rate` bytes/s is excluded; 0: none is. A neighbor counts as
    dead after `node_timeout` seconds of silence. A node keeps `buffer` bytes of data that cannot be read again; 0: its
    default.
    """

    chain: tuple[tuple[str, str, int], ...]
    position: int
    slowest_rate: float = 0.0
    node_timeout: float = NODE_TIMEOUT
    buffer: int = 0


def pipeline_phase(phase: Phase) -> PipelinePhase:
    """Return the phase for its nodes. Raise RemoteProtocolError or WrongInputError if its parameters are invalid."""
    found = from_parameters(PipelineParameters, phase.parameters)
    if any(not 0 <= port < 1 << 16 for _, _, port in found.chain):
        raise RemoteProtocolError("Phase has a port out of range")
    if not 0 <= found.position < len(found.chain):
        raise RemoteProtocolError("Phase has a position outside of its chain")
    if not SHORTEST_TIMEOUT <= found.node_timeout <= LONGEST_TIMEOUT:
        raise RemoteProtocolError("Phase has a time-out of nodes out of range")
    if found.buffer and not SMALLEST_BUFFER <= found.buffer <= LARGEST_BUFFER:
        raise RemoteProtocolError("Phase has a buffer out of range")
    chain = tuple(ChainMember(*member) for member in found.chain)
    return PipelinePhase(
        session=phase.session,
        number=phase.number,
        token=phase.token,
        first_block=phase.first,
        chain=chain,
        index=found.position,
        timings=PipelineTimings.of(found.node_timeout),
        slowest_rate=found.slowest_rate,
        buffer=found.buffer,
    )
