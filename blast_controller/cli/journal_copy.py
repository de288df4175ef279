"""`blast journal export`, `import`, `check` and `take-over`: all of a journal as text, to a new place, and compared."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from blast_base.command_line import DONE, FAILED, WRONG_INPUT, checked
from blast_base.extras import NotInstalledError
from blast_controller.cli.etcd_options import EtcdOptionsError, add_etcd_options, connected, copier_name, endpoints
from blast_controller.store.contents import Contents, StateRow, Written, from_lines, to_lines
from blast_controller.store.errors import JournalError, NotAccessibleError
from blast_controller.store.sqlite import SqliteStore
from blast_controller.store.sqlite_copy import contents_of_file, copy_into_file

_EXPORT = """\
examples:
  blast journal export --file journal.db >journal.jsonl
  blast journal export --etcd 10.0.0.1:2379,10.0.0.2:2379 --etcd-ca ca.pem --etcd-cert me.pem --etcd-key me.key \\
      --output journal.jsonl

The export is consistent even while a controller runs. To move a journal, stop all controllers first."""
_IMPORT = """\
examples:
  blast journal import --etcd 10.0.0.1:2379 --etcd-ca ca.pem --etcd-cert me.pem --etcd-key me.key <journal.jsonl
  blast journal import --file journal.db --input journal.jsonl

The destination must not have a journal yet; nothing is replaced. A failed import leaves no journal."""


_CHECK = """\
examples:
  blast journal check --file journal.db
  blast journal check --etcd 10.0.0.1:2379 --etcd-ca ca.pem --etcd-cert me.pem --etcd-key me.key --json

Read every row and compare it with its stored digest; a controller may run. The exit status is 1,
with a message about the damage and the repair, if a row differs."""


_TAKE_OVER = """\
example:
  systemctl stop blast-controller
  blast journal take-over --file /var/lib/blast/journal.sqlite
  systemctl start blast-controller

A ToR refuses a controller whose journal is younger or older than that of the controller that it last accepted: two
controllers with separate journals would undo each other's changes. After you restore a backup, lose a journal
(start the controller once to create a new one) or move a journal out of etcd, this command lets the journal's next
controller take over the ToRs. Make sure that no other controller runs."""


def register(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `export` and `import` to `blast journal`."""
    export = _add(kinds, "export", "export a journal, its state and history, as text", _EXPORT)
    export.add_argument("--output", type=Path, metavar="FILE", help="output file (default: standard output)")
    export.set_defaults(run=_export)
    into = _add(kinds, "import", "create a journal from an export", _IMPORT)
    into.add_argument("--input", type=Path, metavar="FILE", help="input file (default: standard input)")
    into.set_defaults(run=_import)
    check = _add(kinds, "check", "verify the digests of every row of a journal", _CHECK)
    check.add_argument("--json", action="store_true", help="print JSON")
    check.set_defaults(run=_check)
    summary = "let ToRs accept the controller of a new or restored journal"
    take_over = kinds.add_parser(
        "take-over",
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=_TAKE_OVER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    take_over.add_argument("--file", type=Path, metavar="FILE", required=True, help="SQLite file of the journal")
    take_over.set_defaults(run=_take_over)


def _add(
    kinds: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, epilog: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = kinds.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--file", type=Path, metavar="FILE", help="SQLite file of the journal")
    where.add_argument("--etcd", type=checked(endpoints), metavar="HOST:PORT,…", help="etcd members with the journal")
    add_etcd_options(parser)
    return parser


def _export(arguments: argparse.Namespace) -> int:
    def write() -> None:
        with _contents(arguments) as contents:
            out = sys.stdout if arguments.output is None else arguments.output.open("x", encoding="ascii")
            try:
                for line in to_lines(contents):
                    out.write(line + "\n")
                out.flush()
            finally:
                if arguments.output is not None:
                    out.close()

    return _describe(write)


def _import(arguments: argparse.Namespace) -> int:
    def read() -> None:
        if arguments.input is None:
            _make(arguments, from_lines(sys.stdin.buffer))
            return
        with arguments.input.open("rb") as lines:
            _make(arguments, from_lines(lines))

    return _describe(read)


def _check(arguments: argparse.Namespace) -> int:
    def check() -> None:
        with _contents(arguments) as contents:
            found = Counter(type(row) for row in contents.rows)
        counts = {
            "rows": found[StateRow],
            "entries": found[Written],
            "latest": contents.sequence,
            "epoch": contents.epoch,
        }
        if arguments.json:
            sys.stdout.write(json.dumps(counts) + "\n")
            return
        summary = "{rows} rows and {entries} entries, up to entry {latest}, are intact"
        sys.stdout.write(summary.format(**counts) + "\n")

    return _describe(check)


def _take_over(arguments: argparse.Namespace) -> int:
    def raise_epoch() -> None:
        if not arguments.file.exists():
            raise NotAccessibleError(arguments.file, "there is no journal yet: start a controller to create one")
        # Seconds since 1970 are more than any number of openings.
        store = SqliteStore(arguments.file, min_epoch=int(time.time()))
        epoch = store.open().epoch
        store.close()
        sys.stdout.write(f"The journal is at epoch {epoch}: ToRs will accept its next controller.\n")

    return _describe(raise_epoch)


@contextmanager
def _contents(arguments: argparse.Namespace) -> Iterator[Contents]:
    if arguments.file is not None:
        with contents_of_file(arguments.file) as contents:
            yield contents
        return
    with connected(arguments) as (connection, keys):
        from blast_controller.store.etcd.copying import contents_of_etcd

        yield contents_of_etcd(connection, keys)


def _make(arguments: argparse.Namespace, contents: Contents) -> None:
    if arguments.file is not None:
        copy_into_file(arguments.file, contents)
        return
    with connected(arguments) as (connection, keys):
        from blast_controller.store.etcd.copying import copy_into_etcd
        from blast_controller.store.etcd.leadership import Leadership

        # The lease covers a commit on a busy machine; a slow takeover does no harm here.
        copy_into_etcd(Leadership(connection, keys, copier_name(), ttl=10), contents)


def _describe(act: Callable[[], None]) -> int:
    try:
        act()
    except (NotInstalledError, EtcdOptionsError) as error:
        sys.stderr.write(f"blast: {error}\n")
        return WRONG_INPUT if isinstance(error, EtcdOptionsError) else FAILED
    except JournalError as error:
        sys.stderr.write(f"blast: {error}\n")
        return FAILED
    except FileExistsError as error:
        sys.stderr.write(f"blast: {error.filename} exists already: use another file name\n")
        return WRONG_INPUT
    except OSError as error:
        sys.stderr.write(f"blast: {error.filename or 'the copy'}: {error.strerror}\n")
        return FAILED
    return DONE
