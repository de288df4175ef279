"""Blast: `python -m blast_transport` with any transport, and `blast send --ssh`.

Receivers do not sync their files, like those of the other tools; agents that `--ssh` starts do.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.transfers.bed.bed import SENDER
from benchmarks.transfers.bed.program import Program, await_exits, await_received
from benchmarks.transfers.bed.tools.peers import Served, as_ssh
from benchmarks.transfers.bed.tools.tool import Sent, Tool, derive
from mininet_topos.lab.agents import BLAST, write_new_secret

if TYPE_CHECKING:
    from benchmarks.transfers.bed.run import Run

PORT = 7000
TRANSPORT = (sys.executable, "-m", "blast_transport")
_GROUP, _GROUP_PORT = "239.7.7.7", 7001
_UNSHAPED_MBPS = 100_000
"""The granted rate on unshaped links: more than the machine reaches."""


def secret_file(run: Run) -> Path:
    """Return the file with the secret of a run."""
    path = run.folder / "secret"
    return path if path.exists() else write_new_secret(path)


class Blast(Tool):
    """Blast with one transport, `transport`."""

    transport: str
    engine = "auto"
    """The engine of both ends."""

    def __init__(self) -> None:
        self.receivers: dict[int, Program] = {}
        self.environments: dict[int, dict[str, str]] = {}
        """Additional environment of a receiver, for a library that injects faults."""
        self.names: dict[int, str] = {}
        """Names of receivers other than `h<host>`; a pipeline follows their natural order."""

    def name_of(self, receiver: int) -> str:
        """Return its name in reports."""
        return self.names.get(receiver, f"h{receiver}")

    def prepare(self, run: Run) -> None:
        """Start the receivers and wait until they listen."""
        self.receivers = {receiver: self.start_receiver(run, receiver) for receiver in run.receivers}
        for one in self.receivers.values():
            one.await_event("listening", run.deadline)

    def start_receiver(self, run: Run, receiver: int) -> Program:
        """Start one receiver."""
        command = [*TRANSPORT, "receive", "--listen", f"{run.bed.packet_address(receiver)}:{PORT}"]
        command += ["--directory", str(run.directory(receiver)), "--no-fsync", *self._options(run, receiver)]
        return run.start(receiver, self.name, command, self.environments.get(receiver, {}))

    def send(self, run: Run) -> Sent:
        """Wait for the `received` of each receiver."""
        sender = self.start_sender(run)
        began, ended = await_received(self.receivers.values(), run.deadline)
        await_exits([sender], run.deadline)
        return ended, {**sender.last_json(), "since_first_byte": ended - began}

    def start_sender(self, run: Run) -> Program:
        """Start the sender."""
        command = [*TRANSPORT, "send", str(run.source), "--to", self.addresses(run), *self.transport_options(run)]
        return run.start_sender(self.name, [*command, *self._options(run, SENDER)])

    def addresses(self, run: Run) -> str:
        """Return NAME=ADDRESS:PORT,… of all receivers."""
        pairs = ((self.name_of(receiver), run.bed.packet_address(receiver)) for receiver in run.receivers)
        return ",".join(f"{name}={address}:{PORT}" for name, address in pairs)

    def transport_options(self, run: Run) -> list[str]:
        """Return the options that select the transport."""
        return ["--transport", self.transport]

    def _options(self, run: Run, host: int) -> list[str]:
        interface = run.bed.optical_address(host) if run.bed.plan.light else run.bed.packet_address(host)
        return ["--interface-address", interface, "--secret-file", str(secret_file(run)), "--engine", self.engine]


class BlastOptical(Blast):
    """Blast over the optical network, at the granted rate."""

    name = "optical"
    title = "Blast, optical"
    transport = "optical"

    def transport_options(self, run: Run) -> list[str]:
        """Add a group and a rate."""
        rate = run.bed.plan.shape.rate_mbps or _UNSHAPED_MBPS
        group = ["--group", _GROUP, "--port", str(_GROUP_PORT), "--rate-mbps", f"{rate:g}"]
        return [*super().transport_options(run), *group]


BlastMulticast = derive(Blast, "multicast", "Blast, multicast", transport="multicast")
BlastPipeline = derive(Blast, "pipeline", "Blast, pipeline", transport="pipeline")
BlastUnicast = derive(Blast, "unicast", "Blast, one copy for each", transport="unicast")
OpticalByPython = derive(BlastOptical, "optical-python", "Blast, optical, Python's engine", engine="python")
PipelineByPython = derive(BlastPipeline, "pipeline-python", "Blast, pipeline, Python's engine", engine="python")


class BlastSend(Served):
    """`blast send --ssh` along a pipeline to hosts without Blast: it copies an agent to each and starts it."""

    name = "pipeline"
    title = "Blast, pipeline"

    def prepare(self, run: Run) -> None:
        """Make folders with the names that the command gives to hosts."""
        super().prepare(run)
        self._folders = run.folder / "by-address"
        self._folders.mkdir()
        for receiver in run.receivers:
            (self._folders / run.bed.packet_address(receiver)).symlink_to(run.directory(receiver))

    def send(self, run: Run) -> Sent:
        """Wait for the copies, which are named when verified."""
        words = ["--ssh", "--ssh-folder", str(self._folders / "{host}"), "--order", "given", "--via", "pipeline"]
        command = [BLAST, "send", str(run.source), "--to", ",".join(self.addresses(run)), *words]
        sender = run.start(SENDER, "blast", command, as_ssh(run))
        ended = run.await_outputs(sender)
        await_exits([sender], run.deadline)
        return ended, sender.last_json()
