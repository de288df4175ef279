"""TakTuk (Debian `taktuk`): a file put along a chain or a binary tree of its agents, as in the Kascade paper.

Its agents talk through the remote shells that started them, so these must really go over the network: ours is
`programs/rsh.c`, which encrypts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transport_bed.program import await_exits
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run


class TakTuk(Tool):
    """It starts its agents itself, by a remote shell, and each starts those below it."""

    commands = ("taktuk",)
    program = "rsh"
    arity: int

    def prepare(self, run: Run) -> None:
        """Remote shells are served, each in the folder of its receiver."""
        shell = run.programs_folder / "rsh"
        servers = [run.start(receiver, "rsh", [shell, "serve", run.directory(receiver)]) for receiver in run.receivers]
        for server in servers:
            server.await_line("ready", run.deadline)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """It ends when all have the file."""
        addresses = [run.bed.packet_address(receiver) for receiver in run.receivers]
        # A name without folder: every agent runs in the folder of its receiver.
        put = ["broadcast", "put", "[", str(run.source), "]", "[", run.source.name, "]", ";", "quit"]
        sender = run.start_sender(
            "taktuk", ["taktuk", "-c", run.programs_folder / "rsh", *below(addresses, self.arity), *put]
        )
        await_exits([sender], run.deadline)
        return time.monotonic(), {}


class TakTukChain(TakTuk):
    """Arity 1."""

    name = "taktuk-chain"
    title = "TakTuk, chain"
    arity = 1


class TakTukTree(TakTuk):
    """Arity 2."""

    name = "taktuk-tree"
    title = "TakTuk, binary tree"
    arity = 2


def below(addresses: Sequence[str], arity: int) -> list[str]:
    """The words of a command that put these hosts below the one that reads them, in `arity` subtrees."""
    words = []
    for branch in range(arity):
        if mine := addresses[branch::arity]:
            words += ["-m", mine[0], *(["-[", *rest, "-]"] if (rest := below(mine[1:], arity)) else [])]
    return words
