"""The job of `blast sender`: one task for each transfer, until the controlling program closes the pipe."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from blast_base.command_line import DONE
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.send.broadcasting import Outcome, async_broadcast
from blast_client.send.job import round_settings
from blast_client.send.round import RoundSettings
from blast_client.send.stopped import cancelled_by_sigterm
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.base.report import Progress

MAX_SENDS = 16
"""Maximum number of concurrent transfers; more are refused."""

_LINE_BYTES = 1 << 20
"""Limit of a line of input, which is held in memory."""
_IN_MEMORY = Path("/dev/shm")
_SPOOL = "blast-sender-"


def run_sender(arguments: argparse.Namespace) -> int:
    """Serve standard input until it ends, and return the exit status. Raises WrongInputError, SettingsError."""
    settings = round_settings(arguments)
    with _spool() as spool:
        _print({"event": "ready", "spool": str(spool)})
        with suppress(asyncio.CancelledError):
            asyncio.run(cancelled_by_sigterm(SenderJob(settings, spool).serve()))
    return DONE


@dataclass(frozen=True, slots=True)
class SendRequest:
    """A request of the controlling program."""

    send: str
    file: Path
    name: str
    folder: str
    to: tuple[str, ...]

    @classmethod
    def read(cls, line: dict[str, object]) -> SendRequest:
        """Parse a line. Raises InvalidArgumentError."""
        to = line.get("to")
        if not isinstance(to, list) or not all(isinstance(host, str) for host in to):
            raise InvalidArgumentError("`to` must be a list of HOST, HOST:PORT or HOST=ADDRESS:PORT")
        send, file, name, folder = (_text(line, key) for key in ("send", "file", "name", "folder"))
        return cls(send, Path(file), name, folder, tuple(to))


class SenderJob:
    """The transfers of one `blast sender`."""

    def __init__(self, settings: RoundSettings, spool: Path) -> None:
        self._settings, self._spool = settings, spool
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve standard input until it ends, then stop all transfers."""
        reader = asyncio.StreamReader(limit=_LINE_BYTES)
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        except ValueError as error:
            raise WrongInputError("standard input must be a pipe: start `blast sender` from a program") from error
        try:
            while line := await reader.readline():
                self._take(line)
        except ValueError:
            _print(_refusal(None, f"the line exceeds {_LINE_BYTES} bytes: send fewer receivers at a time"))
        finally:
            await self._stop_all()

    def _take(self, line: bytes) -> None:
        send = None
        try:
            parsed = json.loads(line)
            if not isinstance(parsed, dict):
                raise InvalidArgumentError("the line is not a JSON object")
            if "stop" in parsed:
                self._stop(_text(parsed, "stop"))
                return
            send = _text(parsed, "send")
            self._begin(SendRequest.read(parsed))
        except (ValueError, RecursionError, BlastError) as error:
            _print(_refusal(send, str(error)))

    def _begin(self, request: SendRequest) -> None:
        if request.send in self._running:
            raise InvalidArgumentError(f"{request.send!r} is in use by a running transfer: choose another number")
        if len(self._running) >= MAX_SENDS:
            self._remove(request.file)
            raise InvalidArgumentError(f"{MAX_SENDS} transfers are running, the maximum: wait for one to end")
        task = self._running[request.send] = asyncio.create_task(self._send(request))
        task.add_done_callback(lambda _: self._running.pop(request.send))

    def _stop(self, send: str) -> None:
        # A transfer that has ended meanwhile has already reported that.
        if send in self._running:
            self._running[send].cancel()

    async def _send(self, request: SendRequest) -> None:
        loop = asyncio.get_running_loop()

        def progress(now: Progress) -> None:
            # The sending thread may outlive the loop.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_print, {**now.to_json(), "send": request.send})

        try:
            outcome = await async_broadcast(
                request.file,
                request.to,
                request.name,
                folder=request.folder,
                settings=self._settings,
                progress=progress,
            )
            line = {"event": "end", "send": request.send, **_fields_of(outcome)}
        except asyncio.CancelledError:
            line = _refusal(request.send, "stopped")
        except (BlastError, TransportError, OSError) as error:
            line = _refusal(request.send, str(error))
        except Exception as error:  # noqa: BLE001 - the controlling program waits for an end
            line = _refusal(request.send, f"internal error: {error!r}")
        # Free the space before the program learns of the end.
        self._remove(request.file)
        _print(line)

    def _remove(self, file: Path) -> None:
        if file.parent == self._spool:
            file.unlink(missing_ok=True)

    async def _stop_all(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _fields_of(outcome: Outcome) -> dict[str, object]:
    return {
        "delivered": sorted(outcome.delivered),
        "failed": dict(outcome.failed),
        "transports": list(outcome.transports),
        "seconds": outcome.seconds,
        "bytes": outcome.bytes,
        "no_optical_path": outcome.no_optical_path or None,
    }


@contextmanager
def _spool() -> Iterator[Path]:
    """Create a directory in memory for files to send, with access for this user only."""
    above = _IN_MEMORY if _IN_MEMORY.is_dir() else Path(tempfile.gettempdir())
    _remove_orphans(above)
    folder = Path(tempfile.mkdtemp(prefix=f"{_SPOOL}{os.getpid()}-", dir=above))
    with _locked(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_orphans(above: Path) -> None:
    """Remove the directories of killed senders, whose locks are free."""
    for folder in above.glob(f"{_SPOOL}*"):
        with suppress(OSError), _locked(folder):
            shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a directory. Raises OSError if another process holds the lock, or another user owns the directory."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _text(line: dict[str, object], name: str) -> str:
    value = line.get(name)
    if not isinstance(value, str):
        raise InvalidArgumentError(f"`{name}` must be a text, not {value!r}")
    return value


def _refusal(send: str | None, reason: str) -> dict[str, object]:
    return {"event": "refused", "send": send, "reason": reason}


def _print(line: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()
