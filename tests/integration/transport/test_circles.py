"""Transfers leave nothing large in reference cycles: agents rarely collect garbage, and would grow with each."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from blast_transport.links.dialling import SOURCE
from blast_transport.session.receiver_session import ReceiverSession
from blast_transport.session.route import Route
from blast_transport.session.sender_core import SenderCore
from blast_transport.store.blocks.store import SessionStore
from blast_transport.transports.choices import Chain, OpticalChoice, Tree, Trees, Unicast
from tests.support.transport.transport_hosts import Agent, agents, sender_to
from tests.support.waiting import eventually

TRANSFERS = 3
OF_A_TRANSFER = 150
"""Small objects at the sender and two receivers: the state of chain nodes about each other."""
ROUTES: dict[str, Callable[[], Route]] = {
    "light": lambda: Route(OpticalChoice("239.77.3.9", 5555, 200e6)),
    "pipeline": lambda: Route(Chain()),
    "trees": lambda: Route(Trees((Tree(1e9, {"r0": SOURCE, "r1": "r0"}), Tree(1e9, {"r1": SOURCE, "r0": "r1"})))),
    "unicast": lambda: Route(Unicast()),
}


def transfer(file: Path, there: list[Agent], route: Route) -> None:
    with sender_to(there) as sender:
        assert sender.send_file(file, route).complete == len(there)
    for one in there:
        one.received()
        one.targets.clear()
    eventually(lambda: all(not one.server.busy for one in there), event="the end of every connection")


@pytest.mark.parametrize("transport", ROUTES)
def test_transfers_leave_no_large_reference_cycles(tmp_path: Path, transport: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(1_000_000))
    with agents(tmp_path, 2) as there:
        # The first transfer creates permanent objects, which do not count.
        transfer(file, there, ROUTES[transport]())
        gc.collect()
        # Threads of earlier tests may release objects in the middle of this one.
        gc.freeze()
        gc.disable()
        try:
            for _ in range(TRANSFERS):
                transfer(file, there, ROUTES[transport]())
            assert not large_and_many()
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.unfreeze()
            gc.enable()


def large_and_many() -> list[str]:
    """Return the large objects that the collector finds, and the total if it finds too many objects."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = [type(one).__name__ for one in gc.garbage if isinstance(one, ReceiverSession | SessionStore | SenderCore)]
    found += [f"{len(one)} bytes" for one in gc.garbage if isinstance(one, memoryview) and len(one) > 1 << 12]
    if len(gc.garbage) > TRANSFERS * OF_A_TRANSFER:
        kinds = Counter(type(one).__name__ for one in gc.garbage).most_common(5)
        found.append(f"{len(gc.garbage)} objects, most of them {kinds}")
    return found
