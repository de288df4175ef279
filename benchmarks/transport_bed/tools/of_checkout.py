"""The transport of another checkout of the project, to compare with: with the options that its commands know."""

from __future__ import annotations

import subprocess
from pathlib import Path

from transport_bed.bed import SENDER
from transport_bed.program import Program
from transport_bed.run import Run
from transport_bed.tools.blast import PORT, Blast, secret_file


class OfCheckout(Blast):
    """What `tool` does, by the transport whose `python` it is."""

    def __init__(self, python: Path, tool: Blast) -> None:
        super().__init__()
        self.name, self.environments, self._tool = tool.name, tool.environments, tool
        # Without -P the package of the current folder would be taken, whoever's Python it is.
        self._transport = (str(python), "-P", "-m", "blast_transport")
        self._help = {command: self._ask(command, "--help") for command in ("receive", "send")}

    def start_receiver(self, run: Run, receiver: int) -> Program:
        """One of them."""
        listen = f"{run.bed.packet_address(receiver)}:{PORT}"
        words = ["--listen", listen, "--directory", str(run.directory(receiver))]
        command = self._command(run, receiver, "receive", words)
        return run.start(receiver, self.name, command, self.environments.get(receiver, {}))

    def start_sender(self, run: Run) -> Program:
        """Start it."""
        words = [str(run.source), "--to", self.addresses(run), *self._tool.carrier_options(run)]
        return run.start_sender(self.name, self._command(run, SENDER, "send", words))

    def _command(self, run: Run, host: int, command: str, words: list[str]) -> list[str]:
        words += ["--interface-address", run.bed.light_address(host)]
        if "--secret-file" in self._help[command]:
            words += ["--secret-file", str(secret_file(run))]
        if "--no-fsync" in self._help[command]:
            words += ["--no-fsync"]
        return [*self._transport, command, *words]

    def _ask(self, *words: str) -> str:
        return subprocess.run([*self._transport, *words], capture_output=True, text=True, check=True).stdout


def python_of(checkout: Path) -> Path:
    """Its Python."""
    return checkout.resolve() / ".venv" / "bin" / "python"
