"""A receiver's place in a chain: what a Leg says, as the pipeline wants it, and what the pipeline says, as messages."""

from __future__ import annotations

import socket
from collections.abc import Callable

from blast_transport.pipeline import Ended, Lost, Member, Outcome, PipelineEvent, PipelineLeg, PipelineNode, Reported
from blast_transport.session.links import Dialer
from blast_transport.store.store import Store
from blast_transport.wire.messages import Broken, Leg


def chain_node(leg: Leg, store: Store, connect: Dialer, tell: Callable[[Leg, PipelineEvent], None]) -> PipelineNode:
    """The node that a Leg makes of us, not started yet. Raises WrongInputError for a chain that cannot be."""
    chain = tuple(Member(*member) for member in leg.chain)
    pipeline = PipelineLeg(
        leg.session, leg.number, leg.token, leg.first, chain, leg.position, slowest_rate=leg.slowest_rate
    )
    return PipelineNode(pipeline, store, lambda event: tell(leg, event), by_name(connect))


def by_name(connect: Dialer) -> Callable[[Member, float], socket.socket]:
    """The same, for a member of a chain."""
    return lambda member, seconds: connect((member.name, member.host, member.port), seconds)


def message_of(leg: Leg, event: PipelineEvent) -> Broken | None:
    """What the sender should hear of this event; None: nothing."""
    match event:
        case Lost(name, reason):
            return Broken(leg.session, leg.number, name, reason)
        case Reported(failed):
            return Broken(leg.session, leg.number, over=True, failed=failed)
        case Ended(outcome, reason) if outcome is not Outcome.COMPLETE:
            return Broken(leg.session, leg.number, "", reason or outcome.name.lower(), over=True)
    return None
