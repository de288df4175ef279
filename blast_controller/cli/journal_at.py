"""`blast journal at`: the state at a past time, from the recording."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from blast_base.command_line import DONE, FAILED, WRONG_INPUT, checked
from blast_controller.history.differences import Differences
from blast_controller.history.errors import NothingRecordedError, RecordingError
from blast_controller.history.past import Past, RecordedSpan
from blast_controller.history.reader import RecordingReader
from blast_controller.history.view import for_terminal, parsed, past_lines, span_line, when

DEFAULT_LIMIT = 200
EXAMPLES = """\
examples:
  blast journal at -10m --config /etc/blast/blast.toml
  blast journal at 2026-03-14T15:09:26 --recording recording.sqlite
  blast journal at now --changes-since -1h --config /etc/blast/blast.toml
  blast journal at oldest --json --recording recording.sqlite

A time without a time zone is in the local time zone. The file can be read while the controller runs."""
_AGO = re.compile(r"-(\d{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
OLDEST = float("-inf")
"""Stands for the oldest moment that can be shown."""


class NoRecordingError(Exception):
    """The operator's fault: the config file cannot be read, or names no recording. One sentence."""


def register(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `at` to `blast journal`."""
    parser: argparse.ArgumentParser = kinds.add_parser(
        "at",
        help="show fabric, requests and devices at a past time",
        description="Show fabric, requests and devices at a past time, from the recording.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # `-10m` is a time and no option.
    parser._negative_number_matcher = re.compile(_AGO.pattern + "$")
    parser.add_argument(
        "time", type=checked(moment), metavar="TIME", help="2026-03-14T15:09:26, -10m (s, m, h, d), now, or oldest"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--recording", type=Path, metavar="FILE", help="recording file")
    where.add_argument("--config", type=Path, metavar="FILE", help="configuration file that names the recording")
    parser.add_argument(
        "--changes-since", type=checked(moment), metavar="TIME", help="list the changes from this time to TIME instead"
    )
    parser.add_argument(
        "--limit", type=checked(_count), default=DEFAULT_LIMIT, metavar="N", help="maximum number of lines of each kind"
    )
    parser.add_argument("--json", action="store_true", help="print JSON with all rows")
    parser.set_defaults(run=_at)


def moment(text: str) -> float:
    """Return the seconds since 1970, or OLDEST. Raises ValueError."""
    if text == "oldest":
        return OLDEST
    if text == "now":
        return time.time()
    if ago := _AGO.fullmatch(text):
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"{text!r} is not a time: use 2026-03-14T15:09:26, -10m, now or oldest") from error


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise ValueError(f"{text!r} is not a number of lines: use 1 to 1000000")
    return int(text)


def recording_named_by(config: Path) -> Path:
    """Return the recording's file, from the key `file` of the table `recording`. Raises NoRecordingError.

    Other keys are not read: a configuration that does not load may be the reason for the query.
    """
    try:
        section = tomllib.loads(config.read_text(encoding="utf-8")).get("recording")
    except OSError as error:
        raise NoRecordingError(f"{config} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise NoRecordingError(f"{config} is not TOML: {error}") from error
    file = section.get("file") if isinstance(section, dict) else None
    if not isinstance(file, str) or not file:
        raise NoRecordingError(f"{config} configures no recording: set file in [recording], or use --recording")
    return Path(file)


def _at(arguments: argparse.Namespace) -> int:
    try:
        path = arguments.recording or recording_named_by(arguments.config)
        with closing(RecordingReader(path)) as reader:
            lines = list(_describe(reader, arguments))
    except (RecordingError, NoRecordingError) as error:
        sys.stderr.write(f"blast: {error}\n")
        return WRONG_INPUT if isinstance(error, NoRecordingError) else FAILED
    except (ValueError, TypeError, KeyError, AttributeError):
        sys.stderr.write(
            f"blast: the recording {path} of that time is not readable by this release: use the release that wrote it\n"
        )
        return FAILED
    for line in lines:
        sys.stdout.write(line + "\n")
    return DONE


def _describe(reader: RecordingReader, arguments: argparse.Namespace) -> Iterator[str]:
    span = reader.span()
    past = _shown(reader, span, arguments.time)
    if arguments.changes_since is not None:
        before = _shown(reader, span, arguments.changes_since)
        changes = reader.differences(before, past, arguments.limit)
        yield from [_changes_json(before, past, changes)] if arguments.json else _change_lines(before, past, changes)
    elif arguments.json:
        yield json.dumps({**_head(past), **_span(span), "rows": parsed(past)}, ensure_ascii=False)
    else:
        yield from for_terminal([*past_lines(past, arguments.limit), span_line(span)])


def _shown(reader: RecordingReader, span: RecordedSpan, wall: float) -> Past:
    if wall == OLDEST:
        return reader.moment(span.oldest.sequence)
    try:
        return reader.at(wall)
    except NothingRecordedError as fault:
        raise NothingRecordedError(f"no recording of {when(wall)}: {span_line(span)}") from fault


def _change_lines(before: Past, past: Past, changes: Differences) -> Iterator[str]:
    head = f"from {when(before.wall)} (moment {before.sequence}) to {when(past.wall)} (moment {past.sequence})"
    rest = [f"… {changes.left_off} more rows differ: use --limit or --json"] if changes.left_off else []
    sentences = [difference.sentence for difference in changes.found] or ["no changes"]
    yield from for_terminal([head, *sentences, *rest])


def _changes_json(before: Past, past: Past, changes: Differences) -> str:
    changed = [difference._asdict() for difference in changes.found]
    ends = {"from": _head(before), "to": _head(past)}
    return json.dumps({**ends, "changes": changed, "leftOff": changes.left_off}, ensure_ascii=False)


def _head(past: Past) -> dict[str, object]:
    gap = None if past.gap is None else past.gap._asdict()
    clock = {"moment": past.sequence, "wall": past.wall, "now": past.now, "at": when(past.wall)}
    return {**clock, "run": asdict(past.run), "gap": gap}


def _span(span: RecordedSpan) -> dict[str, object]:
    return {"oldest": span.oldest._asdict(), "newest": span.newest._asdict()}
