"""Commands in the worktree of a commit, each in a new session of which no process survives the command."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.regress.eras import Output

PROBES = Path(__file__).resolve().parent / "probes"
_GRACE_SECONDS = 10.0
_ERROR_LINES = 12
_UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class RunFailedError(Exception):
    """A command failed. The message has the command, its exit status and the end of its standard error."""


def resolve(argv: Sequence[str], worktree: Path) -> list[str]:
    """Fill in the placeholders of a command."""
    environment = worktree / ".venv" / "bin"
    names = {"{python}": environment / "python", "{blast}": environment / "blast", "{probes}": PROBES}
    resolved = list(argv)
    for name, path in names.items():
        resolved = [word.replace(name, str(path)) for word in resolved]
    return resolved


def measure(argv: Sequence[str], worktree: Path, limit_seconds: float) -> Output:
    """Run a command and return its output and CPU time. Raises RunFailedError."""
    before = _children_seconds()
    text = execute(argv, worktree, limit_seconds)
    cpu_seconds = _children_seconds() - before
    try:
        return Output(json.loads(text), cpu_seconds)
    except ValueError:
        raise RunFailedError(
            f"{shlex.join(resolve(argv, worktree))}: the output is not JSON: {text[-200:]!r}"
        ) from None


def execute(argv: Sequence[str], worktree: Path, limit_seconds: float | None = None) -> str:
    """Run a command of a commit and return its standard output. Raises RunFailedError."""
    command = resolve(argv, worktree)
    with tempfile.TemporaryDirectory(prefix="regress-") as name:
        folder = Path(name)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BLAST_")}
        environment = {name: value for name, value in environment.items() if name not in _UNSET}
        environment["TMPDIR"] = str(folder)
        with (folder / "stdout").open("wb") as output, (folder / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                command,
                cwd=worktree,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        try:
            status = process.wait(limit_seconds)
            reason = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            reason = f"still running after {limit_seconds:g} s"
        finally:
            _end_session(process)
        if reason:
            lines = (folder / "stderr").read_text(errors="replace").replace("\r", "\n").strip().splitlines()
            raise RunFailedError("\n".join([f"{shlex.join(command)}: {reason}", *lines[-_ERROR_LINES:]]))
        return (folder / "stdout").read_text(errors="replace")


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the command so that it can clean up, then kill the rest of its process group."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if process.poll() is None:
            _signal(process, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_SECONDS)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
