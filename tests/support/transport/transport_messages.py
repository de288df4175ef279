"""Examples of each kind of message of a control connection."""

from __future__ import annotations

from blast_transport.transports.pipeline.parameters import PipelineParameters
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.groups import GroupParameters
from blast_transport.wire.messages import (
    Abort,
    Credit,
    Demoted,
    Digests,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Phase,
    PhaseReady,
    Readmitted,
    Ready,
    Repair,
    TransportOrder,
    TransportReport,
)
from blast_transport.wire.transports import OPTICAL, PIPELINE, UNICAST

CHAIN = (("", "10.0.0.1", 9), ("h2", "10.0.0.2", 10))
SAMPLES: list[Message] = [
    Hello(1, 10_000_000_000, 8956, 7, "blake3", "file", "naïve name.bin", "in", "c0ffee", bytes(range(32))),
    Hello(2, None, 1456, 44, "sha256", "command", "unpack"),
    Hello(3, 10_000_000, 1456, 44, "blake3", "folder", "sparse", holes=((0, 3), (5, 150))),
    Ready(3, ((0, 5), (9, 1)), 425984, True, 1e9, True),
    Ready(4),
    Phase(5, 1, OPTICAL, 0, 4, 12, parameters=to_parameters(GroupParameters("239.1.2.3", 5000, "10.0.0.9", 40000))),
    Phase(6, 2, PIPELINE, 7, token=b"t" * 16, parameters=to_parameters(PipelineParameters(CHAIN, 1))),
    Phase(7, 3, UNICAST, 9),
    PhaseReady(8, 1, "no interface"),
    Digests(9, 3, bytes(range(48))),
    Credit(10, 4, 3, 9),
    Nack(11, ((0, 1), (7, 100))),
    Repair(12, ((44, b"data"), (47, b"more"))),
    EndOfData(13, 95, bytes(range(32))),
    Fin(14, bytes(32), "", 12.5, 100, 2, 1),
    Fin(15, reason="disk full"),
    Fin(16, bytes(32), engine="compiled"),
    Heartbeat(16, 12),
    Abort(17, "the user interrupted it"),
    Demoted(20),
    Readmitted(21),
    TransportReport(22, 3, b"{}"),
    TransportOrder(23, 3, b"{}"),
]
