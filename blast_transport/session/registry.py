"""The carriers at either end, by the names that they have on the wire."""

from __future__ import annotations

from collections.abc import Callable

from blast_transport.carriers.choices import Chain, Trees
from blast_transport.carriers.optical.receiver import OpticalReceiver
from blast_transport.carriers.optical.sender import OpticalSender
from blast_transport.carriers.receiving import ReceivingCarrier, ReceivingContext
from blast_transport.carriers.sending import SendingCarrier, SendingContext
from blast_transport.carriers.unicast.sender import UnicastSender
from blast_transport.wire.carriers import CARRIERS, OPTICAL, PIPELINE, TREES, UNICAST, Traits
from blast_transport.wire.messages import Leg

SenderMaker = Callable[..., SendingCarrier]
"""(leg without parameters, the choice that named the carrier, what it is given) -> the carrier.

Each takes the one type of choice that names it.
"""

ReceiverMaker = Callable[[Leg, ReceivingContext], ReceivingCarrier]


def _pipeline_sender(leg: Leg, choice: Chain, around: SendingContext) -> SendingCarrier:
    # What few transfers need is loaded when one does: most processes that send or receive live for seconds.
    from blast_transport.carriers.pipeline.sender import PipelineSender

    return PipelineSender(leg, choice, around)


def _pipeline_receiver(leg: Leg, around: ReceivingContext) -> ReceivingCarrier:
    from blast_transport.carriers.pipeline.receiver import PipelineReceiver

    return PipelineReceiver(leg, around)


def _trees_sender(leg: Leg, choice: Trees, around: SendingContext) -> SendingCarrier:
    from blast_transport.carriers.trees.sender import TreesSender

    return TreesSender(leg, choice, around)


def _trees_receiver(leg: Leg, around: ReceivingContext) -> ReceivingCarrier:
    from blast_transport.carriers.trees.receiver import TreesReceiver

    return TreesReceiver(leg, around)


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
    """Load all that a receiver may need before it says that it is ready: a leg does not wait for that.

    A bare host compiles what it loads. A hundred of them on few processors, each at its first leg, came too late to it.
    """
    import blast_transport.carriers.pipeline.receiver
    import blast_transport.carriers.trees.receiver  # noqa: F401


def add_carrier(name: str, traits: Traits, sender: SenderMaker, receiver: ReceiverMaker | None = None) -> None:
    """Let sessions of this process go by one more carrier; both ends have to know it."""
    CARRIERS[name], SENDERS[name] = traits, sender
    if receiver is not None:
        RECEIVERS[name] = receiver
