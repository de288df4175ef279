"""A process in a host of the lab with its children: one process group, with output in files."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mininet_topos.kernel.errors import ProcessError

_STOP_SECONDS = 20.0
"""For an orderly end on a busy machine; then the process is killed."""
_TAIL_BYTES = 4096
"""The end of the log, which has the error."""


@dataclass(frozen=True)
class OutputFiles:
    """The files of a process's standard output and standard error."""

    output: Path
    errors: Path

    def last(self) -> str:
        """Return the last line of each: Spark prints the errors of a Python program to the first."""
        return "; ".join(filter(None, map(_last_line, (self.output, self.errors)))) or "no output"


def _last_line(file: Path) -> str:
    with file.open("rb") as content:
        content.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        lines = content.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class MininetNode(Protocol):
    """The part of a Mininet node that is needed here."""

    name: str

    def popen(self, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        """Start a command in its network."""


class HostProcess:
    """`command`, running in the host `node` in `folder`, with its own environment.

    Raises `ProcessError` if it cannot be started.
    """

    def __init__(
        self, node: MininetNode, command: Sequence[str], env: Mapping[str, str], folder: Path, words: OutputFiles
    ) -> None:
        self.name, self.words = f"{Path(command[0]).name} on {node.name}", words
        with words.output.open("wb") as output, words.errors.open("wb") as errors:
            try:
                self._process: subprocess.Popen[bytes] = node.popen(
                    list(command), env=dict(env), cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
                )
            except OSError as refusal:
                raise ProcessError(f"{self.name} did not start: {refusal}") from refusal

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait up to `seconds`; return the exit status, None if the process still runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.status

    def ask_to_end(self) -> None:
        """Send SIGTERM to the process group."""
        self._signal(signal.SIGTERM)

    def stop(self) -> None:
        """End the process group, by SIGKILL if it takes too long."""
        self.ask_to_end()
        self.wait(_STOP_SECONDS)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        # Mininet starts each process in a session, and thus a group, of its own.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
