"""Hosts with different engines in one transfer: every pair of neighbors, every transport, the reported engines."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from blast_transport.base.engines import COMPILED, PYTHON
from blast_transport.base.report import Received
from blast_transport.links.dialling import SOURCE
from blast_transport.session.route import Route
from blast_transport.session.settings import Destination, SenderSettings
from blast_transport.transports.choices import Chain, TransportChoice, Tree, Trees, Unicast
from blast_transport.wire.messages import MEMORY
from tests.support.transport.transport_hosts import LOOPBACK, MTU, FaultyLight, agent, light, sender_to

pytestmark = pytest.mark.compiled

HOSTS = {"a": PYTHON, "b": COMPILED, "c": COMPILED, "d": PYTHON, "e": PYTHON}
"""In this order along a chain: each engine follows each."""
SIZE = 1_000_017


def a_tree() -> Trees:
    return Trees((Tree(800e6, dict(pairwise(reversed([SOURCE, *HOSTS])))),))


CHOICES: dict[str, Callable[[], TransportChoice]] = {
    "optical": light,
    "pipeline": Chain,
    "trees": a_tree,
    "unicast": Unicast,
}


@pytest.mark.parametrize("sends", [PYTHON, COMPILED])
@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_every_pair_of_engines_works_together(
    tmp_path: Path, choice: Callable[[], TransportChoice], sends: str
) -> None:
    content = random.Random(5).randbytes(SIZE)
    file = tmp_path / "content"
    file.write_bytes(content)
    losing = FaultyLight(0.01, 0.01, 0.01)
    with (
        agent(tmp_path / "a", losing, engine=HOSTS["a"]) as a,
        agent(tmp_path / "b", losing, engine=HOSTS["b"]) as b,
        agent(tmp_path / "c", engine=HOSTS["c"]) as c,
        agent(tmp_path / "d", engine=HOSTS["d"]) as d,
        agent(tmp_path / "e", engine=HOSTS["e"]) as e,
        sender_to([a, b, c, d, e], SenderSettings(LOOPBACK, MTU, engine=sends)) as sender,
    ):
        there = (a, b, c, d, e)
        result = sender.send_file(file, Route(choice()))
        assert [outcome.reason for outcome in result.receivers] == [""] * 5
        assert {outcome.name: outcome.engine for outcome in result.receivers} == HOSTS
        assert result.engine == sends
        for one in there:
            received = one.events.get(timeout=10)
            assert isinstance(received, Received)
            assert (received.engine, received.digest) == (HOSTS[one.name], result.digest)
            assert one.files() == {"content": content}


def test_memory_target_uses_and_reports_python_engine(tmp_path: Path) -> None:
    file = tmp_path / "content"
    file.write_bytes(b"x" * 200_000)
    with agent(tmp_path / "a", engine=COMPILED) as one, sender_to([one]) as sender:
        result = sender.send_file(file, Route(Chain()), Destination("content", MEMORY))
        assert [outcome.reason for outcome in result.receivers] == [""]
        received = one.events.get(timeout=10)
        assert isinstance(received, Received) and received.engine == PYTHON
