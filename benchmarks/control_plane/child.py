"""Processes of a benchmark. A `Child` prints JSON lines, answers lines on standard input, and exits at its end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

STOP_SECONDS = 5.0


class ChildFailedError(Exception):
    """A process printed no line in time, or exited. The message is one sentence."""


class Process:
    """A running command; its standard error goes to `log`, and its standard output, too, if `logged`."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, logged: bool = False, **options: Any) -> None:
        self.name = name
        self._log, self._copy = log, log if logged else Path(os.devnull)
        options |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(command, stderr=stderr, text=True, errors="replace", **options)
        self._lines: SimpleQueue[tuple[float, str] | None] = SimpleQueue()
        """Lines with the times (time.monotonic) of their arrival; None is the end."""
        self._reader = threading.Thread(target=self._read, name=f"read-{name}", daemon=True)
        self._reader.start()

    def write_line(self, line: str) -> None:
        """Write a line to its standard input. Raises BrokenPipeError if it has exited."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output, self._copy.open("a", buffering=1) as log:
            for line in output:
                self._lines.put((time.monotonic(), line.rstrip("\n")))
                log.write(line)
        self._lines.put(None)


class Child(Process):
    """A process that prints JSON lines."""

    def next(self, seconds: float) -> dict[str, Any]:
        """Return its next line. Raises ChildFailedError."""
        try:
            found = self._lines.get(timeout=seconds)
        except Empty:
            raise ChildFailedError(f"the {self.name} printed nothing for {seconds:g} s; see {self._log}") from None
        if found is None:
            raise self._ended()
        document: dict[str, Any] = json.loads(found[1])
        return document

    def waiting(self) -> list[dict[str, Any]]:
        """Return the lines that have arrived. Raises ChildFailedError if it has exited."""
        return [self.next(0.0) for _ in range(self._lines.qsize())]

    def rest(self) -> list[dict[str, Any]]:
        """Return the remaining lines of a process that has exited."""
        self._reader.join()
        return [json.loads(line) for _, line in iter(self._lines.get, None)]

    def order(self, line: str) -> None:
        """Write a line to its standard input. Raises ChildFailedError if it has exited."""
        try:
            self.write_line(line)
        except BrokenPipeError:
            raise self._ended() from None

    def ask(self, seconds: float = 10.0) -> dict[str, Any]:
        """Return its answer to an empty line. Raises ChildFailedError."""
        self.order("")
        return self.next(seconds)

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, user and system (proc(5))."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, seconds: float) -> None:
        """Close its standard input and wait for its end. Raises ChildFailedError."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ChildFailedError(f"the {self.name} did not end within {seconds:g} s; see {self._log}") from None
        if status:
            raise self._ended()

    def kill(self) -> None:
        """Kill it, as in a crash."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Terminate it; kill it if it does not exit in time."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()

    def _ended(self) -> ChildFailedError:
        return ChildFailedError(f"the {self.name} ended with status {self._process.wait()}; see {self._log}")


def print_json(line: dict[str, Any]) -> None:
    """Print a JSON line and flush standard output."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def orders() -> AsyncIterator[str]:
    """Yield the lines on standard input; for use in a child."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()


async def serve_counts(counts: DataclassInstance) -> None:
    """Answer each line on standard input with the counts; for use in a child."""
    async for _ in orders():
        print_json(asdict(counts))
