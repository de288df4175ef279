"""Seven receivers as processes on loopback: one is killed or stopped in mid-transfer, and the others do not mind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg, PipelineTimings
from blast_transport.carriers.pipeline.source import PipelineSource
from blast_transport.store.source import opened_file
from tests.support.pipeline_chain import SEGMENT, Door, Events, Paced, content_of
from tests.support.pipeline_process import NodeProcess
from tests.support.waiting import HANGING

NODES = 7
SIZE = 64 << 20
BLOCK = SEGMENT * 44
# A machine that does much else may keep a process waiting for a second or two.
TIMINGS = PipelineTimings(silence=4.0, answer=4.0)


class Transfer:
    """One leg from here to seven processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content = content_of(SIZE)
        (folder / "source").write_bytes(self.content)
        self.nodes = [NodeProcess(folder / f"n{place}") for place in range(1, NODES + 1)]
        self.events = Events()
        self.seconds = 0.0

    def run(self, rate: float, fault: Callable[[list[NodeProcess]], None], after: float) -> list[dict[str, Any]]:
        door = Door()
        members = [Member("n0", "127.0.0.1", door.port)]
        members += [Member(f"n{place + 1}", "127.0.0.1", node.read_port()) for place, node in enumerate(self.nodes)]
        with opened_file(self.folder / "source") as file:
            legs = [PipelineLeg(1, 1, bytes(16), 0, tuple(members), place, TIMINGS) for place in range(NODES + 1)]
            for place, node in enumerate(self.nodes, 1):
                node.begin(legs[place], SIZE)
            source = PipelineSource(legs[0], Paced(file, rate), BLOCK, self.events)
            door.admit = source.accept
            began = time.monotonic()
            source.start()
            time.sleep(after)  # in the middle: the source is paced
            fault(self.nodes)
            self._turn(source)
            door.close()
        results = [{} if node in self.hit else node.wait() for node in self.nodes]
        ends = [result["drained"]["at"] for result in results if result]
        self.seconds = max(ends) - began
        return results

    hit: tuple[NodeProcess, ...] = ()

    def _turn(self, source: PipelineSource) -> None:
        deadline = time.monotonic() + 30
        while not source.join(0.02):
            source.wake()
            assert time.monotonic() < deadline, "the source does not end"

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def is_whole(self, place: int) -> bool:
        return (self.folder / f"n{place}" / "file").read_bytes() == self.content


@pytest.fixture
def transfer(tmp_path: Path) -> Iterator[Transfer]:
    transfer = Transfer(tmp_path)
    yield transfer
    transfer.close()


@pytest.mark.parametrize("fault", ["kill", "freeze"])
@pytest.mark.parametrize("place", [1, 4, 7])
def test_one_of_seven_fails_in_the_middle(transfer: Transfer, fault: str, place: int) -> None:
    victim = transfer.nodes[place - 1]
    transfer.hit = (victim,)
    planned = 3.0
    results = transfer.run(SIZE / planned, lambda nodes: getattr(victim, fault)(), planned / 3)
    for other, result in enumerate(results, 1):
        if other != place:
            assert result["ended"]["outcome"] == "COMPLETE"
            assert transfer.is_whole(other)
    assert transfer.events.failed is not None
    assert list(transfer.events.failed) == [f"n{place}"]
    # Benchmarks say how long it takes on a machine that does nothing else.
    assert transfer.seconds - planned < HANGING
