"""Options that a sender sets for pipeline nodes: the neighbor timeout takes effect, and bounds are enforced."""

from __future__ import annotations

import pytest

from blast_client.send.round import _timings
from blast_transport.base.errors import WrongInputError
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.transports.choices import Chain as Way
from blast_transport.transports.pipeline.protocol.core import SourceCore
from blast_transport.transports.pipeline.protocol.events import FromSuccessor, Started
from blast_transport.transports.pipeline.protocol.messages import Get
from blast_transport.transports.pipeline.protocol.phase import ChainMember, PipelinePhase, PipelineTimings
from blast_transport.wire.pipeline_bounds import LARGEST_BUFFER, LONGEST_TIMEOUT, SMALLEST_BUFFER


@pytest.mark.parametrize("timeout", [0.2, 1.0, 4.0])
def test_silent_neighbor_is_dead_after_configured_timeout(timeout: float) -> None:
    chain = tuple(ChainMember(name, "h", 1) for name in "abc")
    core = SourceCore(PipelinePhase(1, 1, bytes(16), 0, chain, 0, PipelineTimings.of(timeout)), 0)
    core.handle(Started(), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    core.tick(0.99 * timeout)
    assert not core.node.named_failures()
    core.tick(1.01 * timeout)
    assert core.node.named_failures() == {"b": f"no heartbeat for {timeout:g} s"}


def test_stall_timeout_of_sender_exceeds_twice_node_timeout() -> None:
    assert _timings(1.0) == SenderTimings()
    assert all(_timings(seconds).stall > 2 * seconds for seconds in (0.2, 1.0, 3.0, LONGEST_TIMEOUT))


def test_sender_rejects_pipeline_options_out_of_bounds() -> None:
    for options, sentence in (
        ({"node_timeout": 0.1}, "from 0.2 to 10 s"),
        ({"node_timeout": 10.1}, "from 0.2 to 10 s"),
        ({"buffer": SMALLEST_BUFFER - 1}, "from 8 to 64 MiB"),
        ({"buffer": LARGEST_BUFFER + 1}, "from 8 to 64 MiB"),
    ):
        with pytest.raises(WrongInputError, match=sentence):
            Way(**options)
