"""Ours on hosts that have nothing of it: `blast send --ssh`, which copies an agent to each and starts it.

By ClusterShell, in a window, as Kascade does (III-B); the agents, and with them the data, are what a bare host's Python
can do. They sync their files, as agents do.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transport_bed.bed import SENDER
from transport_bed.program import await_exits
from transport_bed.tools.served import Served, as_ssh

if TYPE_CHECKING:
    from transport_bed.run import Run

BLAST = str(Path(sysconfig.get_path("scripts")) / "blast")


class BlastSend(Served):
    """Along a pipeline, in the order in which the receivers are named."""

    name = "pipeline"
    title = "Blast, pipeline"

    def prepare(self, run: Run) -> None:
        """Folders by the names that the command gives to hosts."""
        super().prepare(run)
        self._folders = run.folder / "by-address"
        self._folders.mkdir()
        for receiver in run.receivers:
            (self._folders / run.bed.packet_address(receiver)).symlink_to(run.directory(receiver))

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """A receiver gives its copy the name when it has verified it."""
        where = ["--ssh", "--ssh-folder", str(self._folders / "{host}"), "--order", "given"]
        to = ["--to", ",".join(self.addresses(run)), "--via", "pipeline"]
        environment = as_ssh(run, self.shell(run))
        sender = run.start(SENDER, "blast", [BLAST, "send", run.source, *to, *where], environment)
        ended = run.await_outputs(sender)
        await_exits([sender], run.deadline)
        return ended, sender.last_json()
