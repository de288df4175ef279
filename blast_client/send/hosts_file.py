"""Files of hosts: receivers of a transfer, and afterwards hosts that have the data and hosts that failed.

Each line has a host or a set of hosts; # begins a comment. The file of failed hosts, with reasons as comments, can be
the file of receivers of the next attempt.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from blast_client.api.base_error import BlastError
from blast_client.send.receivers import Receiver, parse_receivers, written
from blast_transport.base.errors import WrongInputError, sentence

MAX_BYTES = 1 << 20
"""Room for ten thousand hosts; a larger file is another one, named by mistake."""
_LONGEST_NAME = 200
"""With prefix and suffix a name stays within the 255 bytes of file systems."""
_LONGEST_REASON = 300
"""Characters in a comment, which should stay a line."""


def read_hosts(path: Path) -> list[Receiver]:
    """Read the hosts of a file. Raises ValueError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {sentence(error)}") from error
    if len(text) > MAX_BYTES:
        raise ValueError(f"{path} exceeds {MAX_BYTES} bytes, the maximum of a list of hosts")
    try:
        lines = [line.partition("#")[0].strip() for line in text.decode().splitlines()]
        hosts = parse_receivers(line for line in lines if line)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not hosts:
        raise ValueError(f"{path} contains no host: write one in each line")
    return hosts


class HostListError(BlastError):
    """The transfer has ended, but a list of hosts could not be written."""


class HostLists:
    """The output files of hosts that have the data (`ok`) and of hosts that failed (`failed`); None: no file.

    Raises WrongInputError, before the transfer, if a file cannot be written.
    """

    def __init__(self, ok: Path | None, failed: Path | None, source: str) -> None:
        self._ok, self._failed = _usable(ok), _usable(failed)
        if self._ok is not None and self._ok == self._failed:
            raise WrongInputError("--ok-file and --failed-file are the same file: name two files")
        if Path(source).resolve() in (self._ok, self._failed):
            raise WrongInputError(f"{source} is the file to send: name another file for the hosts")

    @contextmanager
    def written_for(self, receivers: Sequence[Receiver], reasons: Mapping[str, str]) -> Iterator[None]:
        """Write the files after the block, also after an exception other than WrongInputError.

        A host in `reasons` failed, or may have. Raises HostListError.
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
    """Return the resolved path of a file after checking that it can be written. Raises WrongInputError."""
    if path is None:
        return None
    path = path.resolve()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise WrongInputError(f"{path} is not a regular file: name another file for the hosts")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise WrongInputError(f"cannot access {path}: {sentence(error)}") from error
    _made_beside(path, "").unlink()
    return path


def _put(path: Path, text: str) -> None:
    """Write a file atomically. Raises HostListError."""
    try:
        partial = _made_beside(path, text)
        try:
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except (OSError, WrongInputError) as error:
        raise HostListError(f"cannot write the list of hosts {path}: {sentence(error)}") from error


def _made_beside(path: Path, text: str) -> Path:
    """Write a new file in the same directory, and sync it to disk. Raises WrongInputError."""
    partial = path.with_name(f".{path.name[:_LONGEST_NAME]}-{secrets.token_hex(4)}")
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise WrongInputError(f"cannot write {path}: {sentence(error)}") from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def _one_line(reason: str) -> str:
    return "".join(c if c.isprintable() else " " for c in reason)[:_LONGEST_REASON]
