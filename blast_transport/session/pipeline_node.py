"""A receiver's place in a chain: what a Leg says, as the pipeline wants it."""

from __future__ import annotations

import socket
from collections.abc import Callable

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.links.dialling import Dialer
from blast_transport.pipeline import Member, PipelineEvent, PipelineNode
from blast_transport.pipeline.parameters import pipeline_leg
from blast_transport.store.store import Store
from blast_transport.wire.messages import Leg


def chain_node(leg: Leg, store: Store, connect: Dialer, tell: Callable[[PipelineEvent], None]) -> PipelineNode:
    """The node that a Leg makes of us, not started yet. Raises RemoteProtocolError, WrongInputError."""
    pipeline = pipeline_leg(leg)
    if pipeline.index == 0:
        raise RemoteProtocolError("Leg names a chain of which we are the source")
    return PipelineNode(pipeline, store, tell, by_name(connect))


def by_name(connect: Dialer) -> Callable[[Member, float], socket.socket]:
    """The same, for a member of a chain."""
    return lambda member, seconds: connect((member.name, member.host, member.port), seconds)
