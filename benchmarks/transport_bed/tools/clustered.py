"""Tools that start nothing on other hosts: `clush` of ClusterShell starts their receivers, all at once, while the
sender starts, which waits for them.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transport_bed.bed import PACKETS, SENDER
from transport_bed.program import Program, await_exits
from transport_bed.tools.naive_tcp import PORT
from transport_bed.tools.served import Served, as_ssh

if TYPE_CHECKING:
    from transport_bed.run import Run

_PLACES = f"{sysconfig.get_path('scripts')}:{os.environ.get('PATH', '')}"


class Clustered(Served):
    """What is run at receivers, each in the folder of its own, and what at the sender."""

    @property
    def missing(self) -> list[str]:
        """What starts them as well."""
        return [*super().missing, *([] if shutil.which("clush", path=_PLACES) else ["clush"])]

    @abstractmethod
    def at_receivers(self, run: Run) -> str:
        """A line for their shell."""

    @abstractmethod
    def at_sender(self, run: Run) -> list[str | Path]:
        """A command."""

    def start(self, run: Run) -> tuple[Program, Program]:
        """The sender, and what has started the receivers and ends with the last of them."""
        addresses = self.addresses(run)
        # Its fan-out is how many may run at a time, not how many are being started.
        words = [
            str(shutil.which("clush", path=_PLACES)),
            "-n",
            "-S",
            "-f",
            str(len(addresses)),
            "-w",
            ",".join(addresses),
            self.at_receivers(run),
        ]
        starter = run.start(SENDER, "clush", words, as_ssh(run, self.shell(run)))
        return run.start_sender(self.name, self.at_sender(run)), starter


class UdpcastByClush(Clustered):
    """In full duplex, with feedback: the fastest of its modes that loses nothing."""

    name = "udpcast"
    title = "udpcast, full duplex"
    commands = ("udp-sender", "udp-receiver")

    def at_receivers(self, run: Run) -> str:
        """They wait for a sender."""
        return f"udp-receiver --file {run.source.name} --interface {PACKETS} --nokbd --no-progress"

    def at_sender(self, run: Run) -> list[str | Path]:
        """It says that it is there until all have answered."""
        quiet = ["--interface", PACKETS, "--full-duplex", "--nokbd", "--no-progress"]
        many = ["--rexmit-hello-interval", "100", "--min-receivers", str(len(run.receivers))]
        return ["udp-sender", "--file", run.source, *quiet, *many]

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """A receiver ends when its copy is whole."""
        await_exits(self.start(run), run.deadline)
        return time.monotonic(), {}


class NaiveByClush(Clustered):
    """`programs/naive_tcp.c`: one TCP connection for each receiver, when all have been made."""

    name = "naive"
    title = "naive TCP, sendfile to each"
    programs = ("rsh", "naive_tcp")

    def at_receivers(self, run: Run) -> str:
        """They listen."""
        return f"{run.programs_folder / 'naive_tcp'} receive {PORT} {run.source.name}"

    def at_sender(self, run: Run) -> list[str | Path]:
        """It tries until they do."""
        return [run.programs_folder / "naive_tcp", "send", run.source, PORT, *self.addresses(run)]

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Copies get their name when they are whole."""
        sender, _ = self.start(run)
        return run.await_outputs(sender), {}
