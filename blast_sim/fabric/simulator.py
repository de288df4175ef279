"""The program `rack-fabric`: where it is found, how it is asked, and that it never outlives whoever has asked.

`rack-fabric check -` says what a run would take, `rack-fabric run -` runs: a scenario in JSON on standard input,
results in JSON on standard output. Status 2 is a scenario that is wrong, told with its place; all other failures are 1.
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
LONGEST_LINE = 65536


class NoSimulator(Exception):
    """The program is not here. The text is a sentence."""


class Refused(Exception):
    """The scenario is wrong. `location` is the keys and places that lead to the fault."""

    def __init__(self, sentence: str, location: Location) -> None:
        super().__init__(sentence)
        self.location = location


class RunFailed(Exception):
    """The program ended without a result. The text is a sentence."""


class Stopped(Exception):
    """Nothing is started any more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run takes: memory at the most, and about so many events."""

    memory_bytes: int
    events: float


def program() -> Path:
    """The one that the environment names, or beside this Python, or on the path. Raises NoSimulator."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise NoSimulator(f"{VARIABLE} names {named!r}, which is no program: correct it, or unset it")
        return Path(found)
    found = shutil.which(PROGRAM, path=str(Path(sys.executable).parent)) or shutil.which(PROGRAM)
    if found is None:
        raise NoSimulator(
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
        """A name of the program's own content: what another one has computed is not its result. Raises OSError."""
        return hashlib.sha256(Path(self._path).read_bytes()).hexdigest()

    def check(self, model: Model) -> Estimate:
        """What a run would take. Raises Refused, RunFailed."""
        told = self._answer(["check", "-"], model, lambda share: None, CHECK_SECONDS)
        try:
            return Estimate(int(told["memory_bytes"]), float(told["events"]))
        except (KeyError, TypeError, ValueError):
            raise RunFailed(f"{self._path} does not say what a run takes: build it anew") from None

    def run(
        self, model: Model, heard: Callable[[float], object] = lambda share: None, trace: Path | None = None
    ) -> Row:
        """The results. `heard` is told now and then which share of the simulated time is over; `trace` is a file to
        write events to. Raises Refused, RunFailed, Stopped.
        """
        options = [] if trace is None else ["--trace", str(trace)]
        return self._answer(["run", "-", "--progress", *options], model, heard)

    def stop(self) -> None:
        """End every run at once, and begin no other."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def _answer(
        self, words: Sequence[str], model: Model, heard: Callable[[float], object], patience: float | None = None
    ) -> Row:
        # Files and not pipes: nobody has to feed one while the other fills.
        with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answer:
            question.write(json.dumps(model, allow_nan=False).encode())
            question.seek(0)
            with self._started(words, question, answer) as process, _ended_after(process, patience):
                last = _followed(process, heard)
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
                raise Stopped("no more runs are begun")
            try:
                process = subprocess.Popen(
                    [*_tied(), self._path, *words], stdin=question, stdout=answer, stderr=subprocess.PIPE
                )
            except OSError as error:
                raise RunFailed(f"{self._path} does not start: {error.strerror}") from error
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
            raise RunFailed(f"{self._path} ended well but wrote no results: build it anew")
        return results

    def _failure(self, status: int, last: bytes) -> Refused | RunFailed:
        told = _table(last)
        sentence, path = told.get("error"), told.get("path", [])
        if status == 2 and isinstance(sentence, str) and isinstance(path, list):
            return Refused(sentence, tuple(step if isinstance(step, int) else str(step) for step in path))
        if isinstance(sentence, str):
            return RunFailed(sentence)
        if status < 0:
            return RunFailed(f"{self._path} was ended by signal {-status}, perhaps for want of memory")
        words = last.decode(errors="replace").strip()
        return RunFailed(f"{self._path} ended with status {status}" + (f": {words[:300]}" if words else ""))


@cache
def _tied() -> tuple[str, ...]:
    """What to start a process with so that it ends with the thread that has started it, however that ends."""
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


def _followed(process: subprocess.Popen[bytes], heard: Callable[[float], object]) -> bytes:
    """Tell how far it is until it says no more; the last line that was about something else."""
    assert process.stderr is not None
    last = b""
    while line := process.stderr.readline(LONGEST_LINE):
        told = _table(line)
        done, of = told.get("done"), told.get("of")
        if isinstance(done, int | float) and isinstance(of, int | float) and of > 0:
            heard(min(1.0, max(0.0, done / of)))
        elif line.strip():
            last = line
    return last


def _table(line: bytes) -> dict[str, object]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
