"""`blast journal`, and its `show`: the history, from a running controller or from the file of one that is down."""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from blast_base.command_line import DONE, FAILED, WRONG_INPUT, checked
from blast_base.extras import NotInstalledError
from blast_client.cli.failures import report_failures
from blast_client.cli.options import add_command, connect
from blast_controller.cli import journal_at as journal_at_command
from blast_controller.cli import journal_copy as journal_copy_command
from blast_controller.cli.etcd_options import EtcdOptionsError, add_etcd_options, connected, endpoints
from blast_controller.configuration.journal import DEFAULT_JOURNAL
from blast_controller.store.details import InvalidEntryError, from_details
from blast_controller.store.errors import JournalError
from blast_controller.store.interface import Entry
from blast_controller.store.reader import JournalReader

PAGE = 1000
"""Entries of one call: the server returns no more (`rpc/pages.py`)."""
FOLLOW_SECONDS = 0.5
"""Seconds between two calls of --follow: a reader notices no delay, and the controller hardly a load."""
EXAMPLES = """\
examples:
  blast journal show --follow
  blast journal show --after 1200 --limit 50 --json
  blast journal show --config blast.toml      (without a running controller)
  blast journal show --etcd etcd1:2379        (the same)
  blast journal at -10m --config blast.toml   (the state ten minutes ago)"""

_DETAILS = {"bytes_sent": "{} bytes sent", "duration": "{} s", "bytes_repaired": "{} bytes retransmitted"}

Read = Callable[[int, int], Sequence[Entry]]
"""From (after_sequence, limit) to the entries."""


class NoJournalError(Exception):
    """The operator's fault: the config file cannot be read, or names no journal. One sentence."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `journal` to `blast`."""
    journal = subparsers.add_parser(
        "journal",
        help="show, check, copy or move the journal; show past states",
        description="Show, check, copy or move the journal (what the controller intends and did); show past states.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = journal.add_subparsers(metavar="COMMAND", required=True)
    show = add_command(kinds, "show", "print the journal's entries, oldest first", "")
    show.epilog = EXAMPLES
    where = show.add_mutually_exclusive_group()
    where.add_argument("--config", type=Path, metavar="FILE", help="configuration file that names the journal")
    where.add_argument("--file", type=Path, metavar="FILE", help="journal file")
    where.add_argument("--etcd", type=checked(endpoints), metavar="HOST:PORT,…", help="etcd members with the journal")
    add_etcd_options(show)
    show.add_argument(
        "--after",
        type=checked(_sequence),
        default=0,
        metavar="N",
        help="only entries with numbers above N",
    )
    show.add_argument(
        "--limit", type=checked(_count), default=sys.maxsize, metavar="N", help="maximum number of entries"
    )
    show.add_argument("--follow", action="store_true", help="wait for new entries and print them")
    show.set_defaults(run=_show)
    journal_at_command.register(kinds)
    journal_copy_command.register(kinds)


@report_failures
def _show(arguments: argparse.Namespace) -> int:
    wait = (lambda: time.sleep(FOLLOW_SECONDS)) if arguments.follow else None
    form = _as_json if arguments.json else _as_line
    try:
        with _source(arguments) as read:
            for entry in entries(read, arguments.after, arguments.limit, wait):
                sys.stdout.write(form(entry) + "\n")
                if arguments.follow:
                    sys.stdout.flush()
    except (JournalError, InvalidEntryError, NotInstalledError, NoJournalError, EtcdOptionsError) as error:
        sys.stderr.write(f"blast: {error}\n")
        return WRONG_INPUT if isinstance(error, NoJournalError | EtcdOptionsError) else FAILED
    return DONE


def entries(read: Read, after: int, limit: int, wait: Callable[[], None] | None) -> Iterator[Entry]:
    """Yield at most `limit` entries after a sequence, page by page; at the end stop, or call `wait` and read again.

    Raises InvalidEntryError from a source whose sequences do not grow.
    """
    while limit > 0:
        found = read(after, min(limit, PAGE))
        for entry in found:
            if entry.sequence <= after:
                raise InvalidEntryError(f"entry {entry.sequence} of the journal comes after entry {after}")
            after = entry.sequence
            yield entry
        limit -= len(found)
        if not found and wait is None:
            return
        if not found and wait is not None:
            wait()


# ---------------------------------------------------------------------------------------------------- where from


def _source(arguments: argparse.Namespace) -> AbstractContextManager[Read]:
    if arguments.config is not None:
        return _from_file(journal_named_by(arguments.config))
    if arguments.etcd is not None:
        return _from_etcd(arguments)
    return _from_controller(arguments) if arguments.file is None else _from_file(arguments.file)


@contextmanager
def _from_controller(arguments: argparse.Namespace) -> Iterator[Read]:
    with connect(arguments) as client:
        yield lambda after, limit: [
            from_details(entry.sequence, entry.kind, entry.json) for entry in client.journal(after, limit)
        ]


@contextmanager
def _from_file(path: Path) -> Iterator[Read]:
    with closing(JournalReader(path)) as reader:
        yield reader.read


@contextmanager
def _from_etcd(arguments: argparse.Namespace) -> Iterator[Read]:
    with connected(arguments) as (connection, keys):
        # Only who has its journal in etcd has the libraries for it.
        from blast_controller.store.etcd.history import EtcdHistory

        yield EtcdHistory(connection, keys).read


def journal_named_by(config: Path) -> Path:
    """Return the journal's file, from the key `file` of the table `journal`. Raises NoJournalError.

    Other keys are not read: a configuration that does not load may be the reason to read the journal.
    """
    try:
        section = tomllib.loads(config.read_text(encoding="utf-8")).get("journal")
    except OSError as error:
        raise NoJournalError(f"{config} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise NoJournalError(f"{config} is not TOML: {error}") from error
    named = section if isinstance(section, dict) else {}
    if named.get("in_memory") is True:
        raise NoJournalError(
            f"{config} keeps the journal in memory: use `blast journal show` without --config while the controller runs"
        )
    if named.get("etcd") is not None:
        raise NoJournalError(f"{config} has its journal in etcd: use --etcd MEMBERS")
    file = named.get("file", DEFAULT_JOURNAL) if section is None or named is section else None
    if not isinstance(file, str) or not file:
        raise NoJournalError(f"{config} configures no journal file: set file in [journal], or use --file")
    return Path(file)


# -------------------------------------------------------------------------------------------------------- shown how


def _as_json(entry: Entry) -> str:
    return json.dumps(asdict(entry))


def _as_line(entry: Entry) -> str:
    note = entry.note or ("forgotten" if entry.body is None else "")
    details = "; ".join(_transfers(entry.body))
    line = f"{_when(entry.at)}  {entry.sequence:>8}  {entry.kind:<11}  {entry.key}  {note}{details and f' ({details})'}"
    # Clients choose keys: none may steer the terminal.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line).rstrip()


def _transfers(body: object) -> Iterator[str]:
    """Yield the senders' reports about the transfers of a request."""
    match body:
        case {"parts": [*parts]}:
            for part in parts:
                match part:
                    case {"report": {**report}}:
                        yield _transfer(report)


def _transfer(report: Mapping[object, object]) -> str:
    details = [form.format(report[name]) for name, form in _DETAILS.items() if report.get(name) is not None]
    match report.get("failed_receivers"):
        case [_, *_] as failed:
            details.append(f"failed receivers: {' '.join(map(str, failed))}")
    return ", ".join(details)


def _when(at: float) -> str:
    try:
        return datetime.fromtimestamp(at).astimezone().isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s"


def _sequence(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 63:
        raise ValueError(f"{text!r} is not an entry number")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 63:
        raise ValueError(f"{text!r} is not a number of entries: use 1 or more")
    return int(text)
