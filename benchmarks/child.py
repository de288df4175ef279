"""Processes of a benchmark: JSON lines out, asked for more by lines on standard input, ended by its end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

STOP_SECONDS = 5.0


class ChildFailed(Exception):
    """A process did not say what it should have. One sentence."""


class Child:
    """A running process. What it writes to standard error goes to `log`."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def next(self, seconds: float) -> dict[str, Any]:
        """Its next line. Raises ChildFailed when none comes in time."""
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            raise ChildFailed(f"the {self.name} said nothing for {seconds:g} s; see {self._log}") from None
        if line is None:
            raise ChildFailed(f"the {self.name} ended with status {self._process.wait()}; see {self._log}")
        said: dict[str, Any] = json.loads(line)
        return said

    def waiting(self) -> list[dict[str, Any]]:
        """The lines that it has said and nobody has taken. Raises ChildFailed when it has ended."""
        return [self.next(0.0) for _ in range(self._lines.qsize())]

    def rest(self) -> list[dict[str, Any]]:
        """All that it has said and nobody has taken, now that it has ended."""
        self._reader.join()
        lines = iter(self._lines.get, None)
        return [json.loads(line) for line in lines]

    def order(self, line: str) -> None:
        """Give it a line. Raises ChildFailed when it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ChildFailed(f"the {self.name} ended with status {self._process.wait()}; see {self._log}") from None

    def ask(self, seconds: float = 10.0) -> dict[str, Any]:
        """Its answer to a line."""
        self.order("")
        return self.next(seconds)

    def cpu_seconds(self) -> float:
        """Processor time that it has used, in user and kernel mode (proc(5))."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, seconds: float) -> None:
        """Let it end by itself, now that there is nothing more for it to read. Raises ChildFailed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ChildFailed(f"the {self.name} did not end within {seconds:g} s; see {self._log}") from None
        if status:
            raise ChildFailed(f"the {self.name} ended with status {status}; see {self._log}")

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()

    def _read(self, output: IO[str]) -> None:
        with output:
            for line in output:
                self._lines.put(line)
        self._lines.put(None)


def tell(line: dict[str, Any]) -> None:
    """In a child: say something."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def serve_counts(counts: DataclassInstance) -> None:
    """In a child: answer each line on standard input by what has been counted, until there are no more."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        tell(asdict(counts))
