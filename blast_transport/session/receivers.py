"""The carriers at a receiver, by the names that they have on the wire."""

from __future__ import annotations

from collections.abc import Callable

from blast_transport.carriers.receiving import CarrierContext, ReceivingCarrier
from blast_transport.optical.receiver import OpticalReceiver
from blast_transport.wire.carriers import OPTICAL, PIPELINE
from blast_transport.wire.messages import Leg


def _pipeline(leg: Leg, around: CarrierContext) -> ReceivingCarrier:
    # What few transfers need is loaded when one does: most processes that receive live for seconds.
    from blast_transport.pipeline.receiver import PipelineReceiver

    return PipelineReceiver(leg, around)


RECEIVERS: dict[str, Callable[[Leg, CarrierContext], ReceivingCarrier]] = {
    OPTICAL: OpticalReceiver,
    PIPELINE: _pipeline,
}
"""What a carrier is made by. One that is not here brings blocks as repairs do, and needs nothing at a receiver."""
