"""A stream into commands changes its way in mid-transfer: nothing of it can be read again, by anybody."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from blast_transport.carriers.choices import CarrierChoice, Chain, Tree, Trees, Unicast
from blast_transport.links.dialling import SOURCE
from blast_transport.session.route import Route
from blast_transport.session.settings import Destination
from blast_transport.store.source import StreamSource
from blast_transport.wire.messages import COMMAND
from tests.support.transport_hosts import PATIENT, agents, light, sender_to

SIZE = 12 << 20
RING = 2 << 20
PIECE = 1 << 16


def chains(*orders: tuple[str, ...]) -> Trees:
    """A tree along each of these."""
    return Trees(tuple(Tree(400e6, dict(zip(order, (SOURCE, *order), strict=False))) for order in orders))


def trees() -> Trees:
    return chains(("r0", "r1", "r2"), ("r2", "r0", "r1"))


CHANGES: dict[str, tuple[Callable[[], CarrierChoice], Callable[[], CarrierChoice]]] = {
    "pipeline to another": (Chain, lambda: Chain(("r2", "r1", "r0"))),
    "pipeline to trees": (Chain, trees),
    "trees to pipeline": (trees, Chain),
    "trees to others": (trees, lambda: chains(("r1", "r2", "r0"), ("r2", "r1", "r0"))),
    "trees to unicast": (trees, Unicast),
    "light to trees": (light, trees),
    "trees to light": (trees, light),
}


@pytest.mark.parametrize(("first", "second"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("time", range(2))
def test_commands_get_all_of_a_stream(
    tmp_path: Path, first: Callable[[], CarrierChoice], second: Callable[[], CarrierChoice], time: int
) -> None:
    content = random.Random(time).randbytes(SIZE)
    route = Route(first())
    reader, writer = os.pipe()

    def produce() -> None:
        for begin in range(0, SIZE, PIECE):
            if begin == SIZE // 2:
                route.go(second())
            os.write(writer, content[begin : begin + PIECE])
        os.close(writer)

    with (
        agents(tmp_path, 3, commands={"collect": ("/bin/dd", "of=collected", "status=none")}) as there,
        sender_to(there, PATIENT) as sender,
        StreamSource(reader, RING) as source,
    ):
        thread = threading.Thread(target=produce)
        thread.start()
        try:
            result = sender.transmit(source, route, Destination("collect", COMMAND))
        finally:
            # Whoever writes into a pipe that nobody reads waits for ever.
            os.close(reader)
            thread.join()
        assert [outcome.reason for outcome in result.receivers] == ["", "", ""]
        assert len(result.carriers) == 2
        for one in there:
            assert (one.directory / "collected").read_bytes() == content
