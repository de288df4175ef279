"""What `blast sender` does: one task for each thing that it is asked to send, as long as whoever asks is there."""

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

from blast_client.base_error import BlastError, WrongArgument
from blast_client.broadcasting import Outcome, async_broadcast
from blast_client.failures import DONE
from blast_client.round import RoundSettings
from blast_client.send_job import round_settings
from blast_client.send_stopped import cancelled_by_sigterm
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.base.report import Progress

MAX_SENDS = 16
"""At once; more are refused."""

_LINE_BYTES = 1 << 20
_IN_MEMORY = Path("/dev/shm")
_SPOOL = "blast-sender-"


def run_sender(arguments: argparse.Namespace) -> int:
    """Serve standard input until it ends; the exit status. Raises WrongInputError, SettingsError."""
    settings = round_settings(arguments)
    with _spool() as spool:
        _print({"event": "ready", "spool": str(spool)})
        with suppress(asyncio.CancelledError):
            asyncio.run(cancelled_by_sigterm(SenderJob(settings, spool).serve()))
    return DONE


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing to be sent."""

    send: str
    file: Path
    name: str
    folder: str
    to: tuple[str, ...]

    @classmethod
    def read(cls, line: dict[str, object]) -> Wanted:
        """Raises WrongArgument."""
        to = line.get("to")
        if not isinstance(to, list) or not all(isinstance(host, str) for host in to):
            raise WrongArgument("`to` must be a list of HOST, HOST:PORT or HOST=ADDRESS:PORT")
        send, file, name, folder = (_text(line, key) for key in ("send", "file", "name", "folder"))
        return cls(send, Path(file), name, folder, tuple(to))


class SenderJob:
    """Reads what to send, and tells how it goes."""

    def __init__(self, settings: RoundSettings, spool: Path) -> None:
        self._settings, self._spool = settings, spool
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Until standard input ends; what is being sent then is given up."""
        reader = asyncio.StreamReader(limit=_LINE_BYTES)
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        except ValueError as error:
            raise WrongInputError("standard input must be a pipe, to whoever asks us to send") from error
        try:
            while line := await reader.readline():
                self._take(line)
        except ValueError:
            _print(_refusal(None, f"a line of more than {_LINE_BYTES} bytes: nobody asks for so much"))
        finally:
            await self._give_up()

    def _take(self, line: bytes) -> None:
        send = None
        try:
            asked = json.loads(line)
            if not isinstance(asked, dict):
                raise WrongArgument("it is no JSON object")
            if "stop" in asked:
                self._stop(_text(asked, "stop"))
                return
            send = _text(asked, "send")
            self._begin(Wanted.read(asked))
        except (ValueError, RecursionError, BlastError) as error:
            _print(_refusal(send, str(error)))

    def _begin(self, wanted: Wanted) -> None:
        if wanted.send in self._running:
            raise WrongArgument(f"{wanted.send!r} is being sent")
        if len(self._running) >= MAX_SENDS:
            self._forget(wanted.file)
            raise WrongArgument(f"{MAX_SENDS} are being sent: wait for one to end")
        task = self._running[wanted.send] = asyncio.create_task(self._send(wanted))
        task.add_done_callback(lambda _: self._running.pop(wanted.send))

    def _stop(self, send: str) -> None:
        # What has ended meanwhile has told so.
        if send in self._running:
            self._running[send].cancel()

    async def _send(self, wanted: Wanted) -> None:
        loop = asyncio.get_running_loop()

        def progress(now: Progress) -> None:
            # From the thread that sends, which may outlive the loop by a moment.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_print, {**now.to_json(), "send": wanted.send})

        try:
            outcome = await async_broadcast(
                wanted.file, wanted.to, wanted.name, folder=wanted.folder, settings=self._settings, progress=progress
            )
            told = {"event": "end", "send": wanted.send, **_told(outcome)}
        except asyncio.CancelledError:
            told = _refusal(wanted.send, "stopped")
        except (BlastError, TransportError, OSError) as error:
            told = _refusal(wanted.send, str(error))
        except Exception as error:  # noqa: BLE001 - whoever asked waits for an end, whatever it is
            told = _refusal(wanted.send, f"an error of the program: {error!r}")
        # First, so that whoever has heard the end finds the space free.
        self._forget(wanted.file)
        _print(told)

    def _forget(self, file: Path) -> None:
        if file.parent == self._spool:
            file.unlink(missing_ok=True)

    async def _give_up(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _told(outcome: Outcome) -> dict[str, object]:
    return {
        "delivered": sorted(outcome.delivered),
        "failed": dict(outcome.failed),
        "transports": list(outcome.transports),
        "seconds": outcome.seconds,
        "bytes": outcome.bytes,
        "no_light": outcome.no_light or None,
    }


@contextmanager
def _spool() -> Iterator[Path]:
    """A folder in memory for what is to be sent, ours alone."""
    above = _IN_MEMORY if _IN_MEMORY.is_dir() else Path(tempfile.gettempdir())
    _remove_orphans(above)
    folder = Path(tempfile.mkdtemp(prefix=f"{_SPOOL}{os.getpid()}-", dir=above))
    with _locked(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_orphans(above: Path) -> None:
    """What senders have left that were killed: nobody holds its lock any more."""
    for folder in above.glob(f"{_SPOOL}*"):
        with suppress(OSError), _locked(folder):
            shutil.rmtree(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises OSError where somebody else has it, or it is not ours."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _text(line: dict[str, object], name: str) -> str:
    value = line.get(name)
    if not isinstance(value, str):
        raise WrongArgument(f"`{name}` must be a text, and is {value!r}")
    return value


def _refusal(send: str | None, reason: str) -> dict[str, object]:
    return {"event": "refused", "send": send, "reason": reason}


def _print(line: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()
