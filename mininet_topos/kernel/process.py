"""A process of a lab: marked, logged, and ready before it is used."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from mininet_topos.kernel.errors import ProcessError
from mininet_topos.kernel.names import MARK

_STOP_SECONDS = 20.0
"""For an orderly end on a busy machine; then the process is killed."""


class LabProcess:
    """A running command that reports readiness by one JSON line `{"event": "ready", …}` on standard output.

    All its output goes to `log`. Raises `ProcessError` if it cannot be started.
    """

    def __init__(self, name: str, command: Sequence[str], lab: str, log: Path, env: Mapping[str, str] = os.environ):
        self.name = name
        self._log = log
        self._is_ended = False
        self._ready: queue.SimpleQueue[dict[str, object] | None] = queue.SimpleQueue()
        try:
            with log.open("ab") as errors:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**env, MARK: lab},
                    text=True,
                    start_new_session=True,
                )
        except OSError as refusal:
            raise ProcessError(f"the {name} does not start: {refusal}") from refusal
        self._reader = threading.Thread(target=self._read, name=f"log-{name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """True if the process has not ended yet."""
        return self._process.poll() is None

    def wait_ready(self, seconds: float) -> dict[str, object]:
        """Wait for the ready line and return it.

        Raises `ProcessError` if it does not come in time or, with the last line of the log, if the process ends before.
        """
        try:
            message = self._ready.get(timeout=seconds)
        except queue.Empty:
            raise ProcessError(f"the {self.name} was not ready after {seconds:g} s: see {self._log}") from None
        if message is None:
            raise ProcessError(self._end_message())
        return message

    def watch(self, report: Callable[[str], None]) -> None:
        """Call back, on a separate thread, with a sentence when the process ends without `stop` or `kill`."""
        threading.Thread(target=self._await_end, args=(report,), name=f"watch-{self.name}", daemon=True).start()

    def stop(self) -> None:
        """Ask the process to end, then end it."""
        self._is_ended = True
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def kill(self) -> None:
        """End the process without asking."""
        self._is_ended = True
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        output = self._process.stdout
        assert output is not None
        with output, self._log.open("a") as log:
            self._copy(output, log)
        self._ready.put(None)

    def _copy(self, output: IO[str], log: IO[str]) -> None:
        for line in output:
            log.write(line)
            log.flush()
            message = _event(line)
            if message is not None:
                self._ready.put(message)

    def _await_end(self, report: Callable[[str], None]) -> None:
        self._reader.join()
        self._process.wait()
        if not self._is_ended:
            report(self._end_message())

    def _end_message(self) -> str:
        return f"the {self.name} ended with status {self._process.wait()}: {self._last_words()}"

    def _last_words(self) -> str:
        # The process has ended, but its output may still be on the way from the pipe to the log.
        time.sleep(0.05)
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else f"nothing in {self._log}"


def _event(line: str) -> dict[str, object] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and message.get("event") == "ready" else None
