"""Ours: `python -m blast_transport`, one file for all its carriers.

Receivers do not sync their files, as those of the peers do not; what that costs is measured by `durable_files.py`.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transport_bed.bed import SENDER
from transport_bed.program import Program, await_exits, await_received
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

PORT = 7000
GROUP, GROUP_PORT = "239.7.7.7", 7001
TRANSPORT = (sys.executable, "-m", "blast_transport")
_UNSHAPED_MBPS = 100_000
"""The rate that is granted where nothing limits it: more than the machine can do."""


def secret_file(run: Run) -> Path:
    """What all of a run know."""
    path = run.folder / "secret"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(32))
    return path


class Blast(Tool):
    """`carrier` is what it is told to use."""

    carrier: str
    engine = "auto"
    """Of both ends."""

    def __init__(self) -> None:
        self.receivers: dict[int, Program] = {}
        self.environments: dict[int, dict[str, str]] = {}
        """What a receiver has in its environment more than others: a library that makes faults."""
        self.names: dict[int, str] = {}
        """What receivers are called, if not `h<host>`; a pipeline goes along their natural order."""
        self.ports: dict[int, int] = {}
        """Where a receiver is reached, if not at `PORT`: at a relay on the same host."""

    def name_of(self, receiver: int) -> str:
        """What it is called in reports."""
        return self.names.get(receiver, f"h{receiver}")

    def prepare(self, run: Run) -> None:
        """They listen."""
        self.receivers = {receiver: self.start_receiver(run, receiver) for receiver in run.receivers}
        for one in self.receivers.values():
            one.await_event("listening", run.deadline)

    def start_receiver(self, run: Run, receiver: int) -> Program:
        """One of them."""
        command = [*TRANSPORT, "receive", "--listen", f"{run.bed.packet_address(receiver)}:{PORT}"]
        command += ["--directory", str(run.directory(receiver)), "--interface-address", light_or_packet(run, receiver)]
        command += ["--secret-file", str(secret_file(run)), "--no-fsync", "--engine", self.engine]
        return run.start(receiver, self.name, command, self.environments.get(receiver, {}))

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """A receiver says when it has verified its copy and given it its name."""
        sender = self.start_sender(run)
        began, ended = await_received(self.receivers.values(), run.deadline)
        await_exits([sender], run.deadline)
        return ended, {**sender.last_json(), "since_first_byte": ended - began}

    def start_sender(self, run: Run) -> Program:
        """Start it."""
        command = [*TRANSPORT, "send", str(run.source), "--to", self.addresses(run), *self.carrier_options(run)]
        command += ["--interface-address", light_or_packet(run, SENDER), "--secret-file", str(secret_file(run))]
        command += ["--engine", self.engine]
        return run.start_sender(self.name, command)

    def addresses(self, run: Run) -> str:
        """NAME=ADDRESS:PORT,… of all receivers."""
        return ",".join(
            f"{self.name_of(receiver)}={run.bed.packet_address(receiver)}:{self.ports.get(receiver, PORT)}"
            for receiver in run.receivers
        )

    def carrier_options(self, run: Run) -> list[str]:
        """How it is told."""
        return ["--carrier", self.carrier]


class BlastOptical(Blast):
    """By light, at the granted rate."""

    name = "optical"
    title = "Blast, optical"
    carrier = "optical"

    def carrier_options(self, run: Run) -> list[str]:
        """A group and a rate as well."""
        group = ["--group", GROUP, "--port", str(GROUP_PORT), "--rate-mbps", f"{granted_mbps(run):g}"]
        return [*super().carrier_options(run), *group]


class BlastPipeline(Blast):
    """From host to host, over packets."""

    name = "pipeline"
    title = "Blast, pipeline"
    carrier = "pipeline"


class BlastSealed(BlastOptical):
    """By light, encrypted: what that costs."""

    name = "sealed"
    title = "Blast, optical and sealed"

    def carrier_options(self, run: Run) -> list[str]:
        """Encrypted as well."""
        return [*super().carrier_options(run), "--sealed"]


class BlastUnicast(Blast):
    """One copy for each receiver, over packets."""

    name = "unicast"
    title = "Blast, one copy for each"
    carrier = "unicast"


def light_or_packet(run: Run, host: int) -> str:
    """The address of a host's interface for light; of its only one where there is no light."""
    return run.bed.light_address(host) if run.bed.plan.light else run.bed.packet_address(host)


def granted_mbps(run: Run) -> float:
    """The rate that a controller would grant for light."""
    return run.bed.plan.shape.rate_mbps or _UNSHAPED_MBPS
