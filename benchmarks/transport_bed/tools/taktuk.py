"""TakTuk (Debian `taktuk`): a file put along a chain or a binary tree of its agents, as in the Kascade paper.

Its agents talk through the remote shells that started them, so these must really go over the network: ours is
`programs/rsh.c`, which encrypts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transport_bed.program import await_exits
from transport_bed.tools.served import Served

if TYPE_CHECKING:
    from transport_bed.run import Run


class TakTuk(Served):
    """Its agents start those below them."""

    commands = ("taktuk",)
    arity: int

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """It ends when all have the file."""
        # A name without folder: every agent runs in the folder of its receiver.
        put = ["broadcast", "put", "[", str(run.source), "]", "[", run.source.name, "]", ";", "quit"]
        tree = below(self.addresses(run), self.arity)
        sender = run.start_sender("taktuk", ["taktuk", "-c", self.shell(run), *tree, *put])
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
