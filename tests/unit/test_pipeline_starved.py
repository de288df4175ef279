"""A node that waits for data most of the time says so with its signs of life."""

from __future__ import annotations

from blast_transport.carriers.pipeline.protocol.core import NodeCore
from blast_transport.carriers.pipeline.protocol.events import Command, Joined, SendUp, Started
from blast_transport.carriers.pipeline.protocol.leg import Member, PipelineLeg
from blast_transport.carriers.pipeline.protocol.messages import Alive

CHAIN = tuple(Member(name, "h", 1) for name in "ab")


def alive_in(commands: list[Command]) -> list[Alive]:
    messages = [command.message for command in commands if isinstance(command, SendUp)]
    return [message for message in messages if isinstance(message, Alive)]


def test_who_waits_for_more_than_half_of_the_time_is_starved() -> None:
    core = NodeCore(PipelineLeg(1, 1, bytes(16), 0, CHAIN, 1), 0)
    core.handle(Started(), 0.0)
    core.handle(Joined(0), 0.0)
    beat = core.node.leg.timings.heartbeat
    starved = []
    for turn, share in enumerate((0.0, 0.6, 0.4, 1.0, 0.0)):
        core.waited(share * beat / 2)
        core.waited(share * beat / 2)
        (alive,) = alive_in(core.tick(turn * beat * 1.01))
        starved.append(alive.starved)
    assert starved == [False, True, False, True, False]
