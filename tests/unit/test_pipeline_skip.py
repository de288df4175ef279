"""A source forgets what everybody has, by whatever way: a node that has it by now goes on behind it."""

from __future__ import annotations

import pytest

from blast_transport.carriers.pipeline.protocol.core import NodeCore
from blast_transport.carriers.pipeline.protocol.events import (
    CloseFetch,
    Command,
    FromPredecessor,
    FromSource,
    Joined,
    SendUp,
    Skip,
    Started,
    Tell,
)
from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg
from blast_transport.carriers.pipeline.protocol.messages import Forget, Get, Quit

CHAIN = tuple(Member(f"n{place}", "h", 1) for place in range(4))


def node(predecessor: int) -> NodeCore:
    """One that asked its predecessor for what comes from byte 100 on."""
    core = NodeCore(PipelineLeg(1, 1, bytes(16), 0, CHAIN, 3), 100)
    core.handle(Started(), 0.0)
    assert SendUp(Get(100)) in core.handle(Joined(predecessor), 0.0)
    return core


def said(commands: list[Command]) -> list[Command]:
    return [command for command in commands if not isinstance(command, Tell)]


@pytest.mark.parametrize("predecessor", [0, 2])
def test_what_was_brought_by_others_is_not_missed(predecessor: int) -> None:
    core = node(predecessor)
    core.node.stored_before = 300
    commands = said(core.handle(FromPredecessor(Forget(200)), 0.1))
    assert commands == [Skip(300), SendUp(Get(300))]
    assert core.up.receiving


def test_it_may_come_while_the_source_is_asked() -> None:
    core = node(2)
    core.handle(FromPredecessor(Forget(200)), 0.1)
    assert core.up.fetching
    core.node.stored_before = 200
    commands = said(core.handle(FromSource(Forget(150)), 0.2))
    assert commands == [CloseFetch(), Skip(200), SendUp(Get(200))]
    assert core.up.receiving


def test_what_nobody_brought_is_gone() -> None:
    core = node(0)
    core.node.stored_before = 199
    commands = said(core.handle(FromPredecessor(Forget(200)), 0.1))
    assert any(isinstance(command, SendUp) and isinstance(command.message, Quit) for command in commands)
    assert not core.up.receiving
