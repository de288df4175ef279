"""What a sender orders of the nodes of a pipeline takes effect there: the time-out on a neighbour, and the buffer."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from blast_client.round import _timings
from blast_transport.base.errors import WrongInputError
from blast_transport.carriers.choices import Chain as Way
from blast_transport.carriers.pipeline.connections import copy_pump
from blast_transport.carriers.pipeline.protocol.core import SourceCore
from blast_transport.carriers.pipeline.protocol.events import FromSuccessor, Started
from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg, PipelineTimings
from blast_transport.carriers.pipeline.protocol.messages import Get
from blast_transport.session.peers.timings import SenderTimings
from blast_transport.store.memory_target import MemoryTarget
from blast_transport.store.source import opened_file
from blast_transport.store.target import Buffer
from blast_transport.wire.pipeline_bounds import LARGEST_BUFFER, LONGEST_TIMEOUT, SMALLEST_BUFFER
from tests.support.pipeline_chain import Chain, memory_store
from tests.support.waiting import at_rest, eventually

MB = 1 << 20
SIZE = 40 * MB


class Buffered(Chain):
    """A chain whose nodes keep so much."""

    buffer = 0

    def leg(self, place: int, first_block: int = 0) -> PipelineLeg:
        return replace(super().leg(place, first_block), buffer=self.buffer)


@pytest.mark.parametrize("timeout", [0.2, 1.0, 4.0])
def test_a_silent_neighbour_is_dead_after_the_time_that_was_ordered(timeout: float) -> None:
    chain = tuple(Member(name, "h", 1) for name in "abc")
    core = SourceCore(PipelineLeg(1, 1, bytes(16), 0, chain, 0, PipelineTimings.of(timeout)), 0)
    core.handle(Started(), 0.0)
    core.handle(FromSuccessor(Get(0)), 0.0)
    core.tick(0.99 * timeout)
    assert not core.node.named_failures()
    core.tick(1.01 * timeout)
    assert core.node.named_failures() == {"b": f"no sign of life for {timeout:g} s"}


@pytest.mark.parametrize("buffer", [0, LARGEST_BUFFER])
def test_a_node_runs_as_far_ahead_as_its_buffer_lets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffer: int
) -> None:
    """The second one's store takes nothing, so that the first one stops a quarter of its buffer ahead of it."""
    monkeypatch.setattr(copy_pump, "_MOST_WAITING", 1 << 16)
    with (tmp_path / "file").open("wb") as sparse:
        sparse.truncate(SIZE)
    go, write = threading.Event(), MemoryTarget.write
    first, second = memory_store(SIZE), memory_store(SIZE)

    def stuck(target: MemoryTarget, offset: int, *pieces: Buffer) -> None:
        if target is second.target:
            go.wait(60)
        write(target, offset, *pieces)

    monkeypatch.setattr(MemoryTarget, "write", stuck)
    patient = PipelineTimings(silence=60.0, answer=60.0, slow=60.0)
    with Buffered(2, patient) as chain, opened_file(tmp_path / "file") as file:
        chain.buffer = buffer
        last, intake = chain.node(2, second)._intake, chain.node(1, first)._intake
        chain.source(file)
        eventually(lambda: intake.position > MB)
        ahead = at_rest(lambda: intake.position - last.position, seconds=1.0)
        go.set()
        eventually(lambda: intake.position == SIZE)
        kept = intake.replay.end - intake.replay.lowest
    assert ahead == pytest.approx(buffer / 4 or 8 * MB, abs=MB)
    assert kept == pytest.approx(min(SIZE, buffer or 32 * MB), abs=MB)


def test_nobody_is_given_up_by_the_sender_before_the_chain_can_have_done_so() -> None:
    assert _timings(1.0) == SenderTimings()
    assert all(_timings(seconds).stall > 2 * seconds for seconds in (0.2, 1.0, 3.0, LONGEST_TIMEOUT))


def test_a_way_out_of_bounds_is_refused_at_the_sender() -> None:
    for options, sentence in (
        ({"node_timeout": 0.1}, "from 0.2 to 10 s"),
        ({"node_timeout": 10.1}, "from 0.2 to 10 s"),
        ({"buffer": SMALLEST_BUFFER - 1}, "from 8 to 64 MiB"),
        ({"buffer": LARGEST_BUFFER + 1}, "from 8 to 64 MiB"),
    ):
        with pytest.raises(WrongInputError, match=sentence):
            Way(**options)
