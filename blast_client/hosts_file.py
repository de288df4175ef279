"""Files of hosts: those that are to receive, and afterwards those that have it and those that have not.

One host or set of hosts a line; what follows a # is a comment. So the file of those that failed, with the reasons as
comments, is the next one of those that are to receive.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from blast_client.base_error import BlastError
from blast_client.receivers import Receiver, parse_receivers, written
from blast_transport.base.errors import WrongInputError, sentence

MAX_BYTES = 1 << 20
_LONGEST_NAME = 200
_LONGEST_REASON = 300


def read_hosts(path: Path) -> list[Receiver]:
    """The hosts that a file names. Raises ValueError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {sentence(error)}") from error
    if len(text) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes: that is no list of hosts")
    try:
        lines = [line.partition("#")[0].strip() for line in text.decode().splitlines()]
        hosts = parse_receivers(line for line in lines if line)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not hosts:
        raise ValueError(f"{path} names no host")
    return hosts


class ListNotWritten(BlastError):
    """Hosts have, or have not, what was sent, and the list of them could not be written."""


class HostLists:
    """Where those that have it (`ok`) and those that have not (`failed`) are to be written; None: nowhere.

    Raises WrongInputError where that cannot be, before there is anything to write.
    """

    def __init__(self, ok: Path | None, failed: Path | None, source: str) -> None:
        self._ok, self._failed = _usable(ok), _usable(failed)
        if self._ok is not None and self._ok == self._failed:
            raise WrongInputError("--ok-file and --failed-file are the same file: name two")
        if Path(source).resolve() in (self._ok, self._failed):
            raise WrongInputError(f"{source} is what is sent: name another file for the hosts")

    @contextmanager
    def written_for(self, receivers: Sequence[Receiver], reasons: Mapping[str, str]) -> Iterator[None]:
        """Written when the block is over, however it ends, unless it was not even begun (WrongInputError).

        By then a host has a reason in `reasons` if it does not have it, or is not known to. Raises ListNotWritten.
        """
        try:
            yield
        except WrongInputError:
            raise
        except BaseException:
            self._write(receivers, reasons)
            raise
        self._write(receivers, reasons)

    def _write(self, receivers: Sequence[Receiver], reasons: Mapping[str, str]) -> None:
        ok, failed = list[str](), list[str]()
        for receiver in receivers:
            reason = reasons.get(receiver[0])
            if reason is None:
                ok.append(f"{written(receiver)}\n")
            else:
                failed.append(f"{written(receiver)}\t# {_one_line(reason)}\n")
        for path, lines in ((self._ok, ok), (self._failed, failed)):
            if path is not None:
                _put(path, "".join(lines))


def _usable(path: Path | None) -> Path | None:
    """The file itself, of which is known that it can be written."""
    if path is None:
        return None
    path = path.resolve()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WrongInputError(f"{path} is no file: a list of hosts cannot take its place")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise WrongInputError(f"{path} cannot be looked at: {sentence(error)}") from error
    _made_beside(path, "").unlink()
    return path


def _put(path: Path, text: str) -> None:
    """Whole, or not at all."""
    try:
        partial = _made_beside(path, text)
        try:
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, WrongInputError) as error:
        raise ListNotWritten(f"the hosts are not listed in {path}: {sentence(error)}") from error


def _made_beside(path: Path, text: str) -> Path:
    """A new file in the same folder, on disk. Raises WrongInputError."""
    partial = path.with_name(f".{path.name[:_LONGEST_NAME]}-{secrets.token_hex(4)}")
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise WrongInputError(f"{path} cannot be written: {sentence(error)}") from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def _one_line(reason: str) -> str:
    return "".join(c if c.isprintable() else " " for c in reason)[:_LONGEST_REASON]
