"""The transports at either end, by the names that they have on the wire."""

from __future__ import annotations

from collections.abc import Callable

from blast_transport.transports.choices import Chain, Trees
from blast_transport.transports.optical.receiver import OpticalReceiver
from blast_transport.transports.optical.sender import OpticalSender
from blast_transport.transports.receiving import ReceivingContext, ReceivingTransport
from blast_transport.transports.sending import SendingContext, SendingTransport
from blast_transport.transports.unicast.sender import UnicastSender
from blast_transport.wire.messages import Phase
from blast_transport.wire.transports import OPTICAL, PIPELINE, TRANSPORTS, TREES, UNICAST, Traits

SenderMaker = Callable[..., SendingTransport]
"""(phase without parameters, the choice that named the transport, what it is given) -> the transport.

Each takes the one type of choice that names it.
"""

ReceiverMaker = Callable[[Phase, ReceivingContext], ReceivingTransport]


def _pipeline_sender(phase: Phase, choice: Chain, around: SendingContext) -> SendingTransport:
    # Load rare transports on demand: most processes that send or receive live for seconds.
    from blast_transport.transports.pipeline.sender import PipelineSender

    return PipelineSender(phase, choice, around)


def _pipeline_receiver(phase: Phase, around: ReceivingContext) -> ReceivingTransport:
    from blast_transport.transports.pipeline.receiver import PipelineReceiver

    return PipelineReceiver(phase, around)


def _trees_sender(phase: Phase, choice: Trees, around: SendingContext) -> SendingTransport:
    from blast_transport.transports.trees.sender import TreesSender

    return TreesSender(phase, choice, around)


def _trees_receiver(phase: Phase, around: ReceivingContext) -> ReceivingTransport:
    from blast_transport.transports.trees.receiver import TreesReceiver

    return TreesReceiver(phase, around)


SENDERS: dict[str, SenderMaker] = {
    OPTICAL: OpticalSender,
    PIPELINE: _pipeline_sender,
    TREES: _trees_sender,
    UNICAST: UnicastSender,
}
RECEIVERS: dict[str, ReceiverMaker] = {
    OPTICAL: OpticalReceiver,
    PIPELINE: _pipeline_receiver,
    TREES: _trees_receiver,
}
"""One that is not here brings blocks as repairs do, and needs nothing at a receiver."""


def load_receivers() -> None:
    """Load all transports of a receiver before it sends Ready, because a phase does not wait for that.

    A host without compiled Python files compiles them on loading. A hundred such receivers on few processors were too
    late for their first phase.
    """
    import blast_transport.transports.pipeline.receiver
    import blast_transport.transports.trees.receiver  # noqa: F401


def add_transport(name: str, traits: Traits, sender: SenderMaker, receiver: ReceiverMaker | None = None) -> None:
    """Add a transport to the sessions of this process; both ends have to know it."""
    TRANSPORTS[name], SENDERS[name] = traits, sender
    if receiver is not None:
        RECEIVERS[name] = receiver
