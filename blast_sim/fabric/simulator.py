"""The program `rack-fabric`: its location, its calls, and its termination together with the caller.

`rack-fabric check -` estimates a run, `rack-fabric run -` runs it: a scenario in JSON on standard input, results in
JSON on standard output. Exit status 2 is an invalid scenario, with the position; all other failures are 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

from blast_controller.configuration.schema import Location
from blast_sim.base.report import Row
from blast_sim.fabric.scenario import Model

PROGRAM = "rack-fabric"
VARIABLE = "BLAST_RACK_FABRIC"
"""Names another program than the one that is installed."""

CHECK_SECONDS = 60.0
"""A check builds the trees of all flows, which takes seconds for the largest scenarios."""
LONGEST_LINE = 65536
"""A line of progress is short; anything longer is an error of the simulator."""


class NoSimulatorError(Exception):
    """The rack-fabric program was not found. The text is a sentence."""


class ScenarioRefusedError(Exception):
    """The program rejected the scenario. `location` has the keys and indices that lead to the error."""

    def __init__(self, sentence: str, location: Location) -> None:
        super().__init__(sentence)
        self.location = location


class RunFailedError(Exception):
    """The program ended without a result. The text is a sentence."""


class StoppedError(Exception):
    """A run was requested after `Simulator.stop`."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The cost of a run: maximum memory, and approximate number of events."""

    memory_bytes: int
    events: float


def program() -> Path:
    """Return the program named by the environment, beside this Python, or on the path. Raises NoSimulatorError."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise NoSimulatorError(f"{VARIABLE} names {named!r}, which is no program: correct it, or unset it")
        return Path(found)
    found = shutil.which(PROGRAM, path=str(Path(sys.executable).parent)) or shutil.which(PROGRAM)
    if found is None:
        raise NoSimulatorError(
            f"the program {PROGRAM} is not built: run make setup in a checkout, which needs Rust 1.85 or newer "
            f"(as root it installs Debian's), or name one in {VARIABLE}"
        )
    return Path(found)


class Simulator:
    """The program, and the runs of it that are under way. Runs may be asked for by several threads."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def version(self) -> str:
        """Return the digest of the program's content, which distinguishes results of different versions.

        Raises OSError.
        """
        return hashlib.sha256(Path(self._path).read_bytes()).hexdigest()

    def check(self, model: Model) -> RunEstimate:
        """Return the cost of a run. Raises ScenarioRefusedError, RunFailedError, StoppedError."""
        values = self._answer(["check", "-"], model, lambda share: None, CHECK_SECONDS)
        try:
            return RunEstimate(int(values["memory_bytes"]), float(values["events"]))
        except (KeyError, TypeError, ValueError):
            raise RunFailedError(f"{self._path} does not estimate a run: rebuild it with `make setup`") from None

    def run(
        self, model: Model, advance: Callable[[float], object] = lambda share: None, trace: Path | None = None
    ) -> Row:
        """Run the simulation and return its results.

        `advance` is called with the share of simulated time that is over; `trace` is a file for events. Raises
        ScenarioRefusedError, RunFailedError, StoppedError.
        """
        options = [] if trace is None else ["--trace", str(trace)]
        return self._answer(["run", "-", "--progress", *options], model, advance)

    def stop(self) -> None:
        """End every run at once, and start no others."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def _answer(
        self, words: Sequence[str], model: Model, advance: Callable[[float], object], timeout: float | None = None
    ) -> Row:
        # Files instead of pipes: no pipe has to be fed while another fills.
        with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answer:
            question.write(json.dumps(model, allow_nan=False).encode())
            question.seek(0)
            with self._started(words, question, answer) as process, _ended_after(process, timeout):
                last = _followed(process, advance)
                status = process.wait()
            if status != 0:
                raise self._failure(status, last)
            answer.seek(0)
            return self._results(answer)

    @contextmanager
    def _started(
        self, words: Sequence[str], question: IO[bytes], answer: IO[bytes]
    ) -> Iterator[subprocess.Popen[bytes]]:
        with self._lock:
            if self._stopped:
                raise StoppedError("no more runs are begun")
            try:
                process = subprocess.Popen(
                    [*_tied(), self._path, *words], stdin=question, stdout=answer, stderr=subprocess.PIPE
                )
            except OSError as error:
                raise RunFailedError(f"{self._path} does not start: {error.strerror}") from error
            self._running.add(process)
        with process:
            try:
                yield process
            finally:
                process.kill()
                with self._lock:
                    self._running.discard(process)

    def _results(self, answer: IO[bytes]) -> Row:
        try:
            results = json.load(answer)
        except ValueError:
            results = None
        if not isinstance(results, dict) or not results:
            raise RunFailedError(f"{self._path} succeeded without results: rebuild it with `make setup`")
        return results

    def _failure(self, status: int, last: bytes) -> ScenarioRefusedError | RunFailedError:
        values = _table(last)
        sentence, path = values.get("error"), values.get("path", [])
        if status == 2 and isinstance(sentence, str) and isinstance(path, list):
            return ScenarioRefusedError(sentence, tuple(step if isinstance(step, int) else str(step) for step in path))
        if isinstance(sentence, str):
            return RunFailedError(sentence)
        if status < 0:
            return RunFailedError(f"{self._path} was ended by signal {-status}, perhaps for want of memory")
        words = last.decode(errors="replace").strip()
        return RunFailedError(f"{self._path} ended with status {status}" + (f": {words[:300]}" if words else ""))


@cache
def _tied() -> tuple[str, ...]:
    """Return a command prefix that makes a process end together with the thread that started it."""
    words = ("setpriv", "--pdeathsig", "KILL", "--")
    try:
        subprocess.run([*words, "true"], capture_output=True, timeout=CHECK_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return words


@contextmanager
def _ended_after(process: subprocess.Popen[bytes], seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _followed(process: subprocess.Popen[bytes], advance: Callable[[float], object]) -> bytes:
    """Report progress until the program prints no more; return its last line that is not progress."""
    assert process.stderr is not None
    last = b""
    while line := process.stderr.readline(LONGEST_LINE):
        values = _table(line)
        done, of = values.get("done"), values.get("of")
        if isinstance(done, int | float) and isinstance(of, int | float) and of > 0:
            advance(min(1.0, max(0.0, done / of)))
        elif line.strip():
            last = line
    return last


def _table(line: bytes) -> dict[str, object]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
