"""Rows of scenarios: one for each tool on each bed, as they are kept, told, and drawn (blast figures pipeline)."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import machine

from transport_bed.failures import CannotRun
from transport_bed.measured import Measured
from transport_bed.scenarios import COMMANDS, Scenario

Row = dict[str, Any]

_SETTINGS = ("bytes", "limit_seconds", "repeats")


def empty_row(scenario: Scenario, receivers: int, tool: str, settings: Row) -> Row:
    """Of what was not measured yet; `settings` are those of `_SETTINGS`."""
    return {
        "scenario": scenario.name,
        "section": scenario.section,
        "tool": tool,
        "title": COMMANDS[tool].title,
        "receivers": receivers,
        "rate_mbps": scenario.rate_mbps,
        **settings,
        "seconds": [],
        "start_seconds": [],
        "processor_seconds": [],
        "others_share": [],
        "failures": [],
        "late": 0,
        "left_out": "",
    }


def note(row: Row, outcome: Measured) -> None:
    """Add one run."""
    if outcome.late:
        row["late"] += 1
    elif outcome.failure:
        row["failures"].append(outcome.failure)
    else:
        row["seconds"].append(round(outcome.seconds, 4))
        row["start_seconds"].append(round(outcome.start_seconds, 4))
        if outcome.processor_seconds is not None:
            row["processor_seconds"].append(round(outcome.processor_seconds, 4))
        if outcome.others_share is not None:
            row["others_share"].append(round(outcome.others_share, 3))


def given_up(row: Row) -> bool:
    """Who was late once would be so again; who always fails has nothing to add."""
    return bool(row["late"]) or (len(row["failures"]) > 1 and not row["seconds"])


def too_slow(rows: Iterable[Row], wanted: Row) -> str:
    """Why a tool is not tried: it was late with fewer receivers. Empty where it was not."""
    names = ("scenario", "tool", "bytes", "limit_seconds")
    like = [row for row in rows if row["late"] and all(row[name] == wanted[name] for name in names)]
    fewer = [row for row in like if row["receivers"] < wanted["receivers"]]
    if not fewer:
        return ""
    first = min(fewer, key=lambda row: row["receivers"])
    return f"not done in {first['limit_seconds']:g} s with {first['receivers']} receivers already"


def read_kept(path: Path | None) -> list[Row]:
    """What is kept there; nothing where there is no such file. Raises CannotRun."""
    if path is None or not path.exists():
        return []
    try:
        rows = json.loads(path.read_bytes())["rows"]
    except (ValueError, LookupError, TypeError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "left_out" in row for row in rows):
        raise CannotRun(f"{path} is no result of this script: name another file, or delete it")
    return rows


def keep(path: Path | None, rows: Sequence[Row]) -> None:
    """Write them, whole or not at all."""
    if path is not None:
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(as_json(rows))
        unfinished.rename(path)


def as_json(rows: Sequence[Row]) -> str:
    """With the machine that they come from."""
    return json.dumps({"machine": machine.describe(), "rows": list(rows)}, indent=2) + "\n"


def is_same(row: Row, wanted: Row) -> bool:
    """Whether a kept row answers what this one asks."""
    names = ("scenario", "tool", "receivers", *_SETTINGS)
    return all(row.get(name) == wanted[name] for name in names) and row["left_out"] == wanted["left_out"]


def line(row: Row) -> str:
    """For a table."""
    start = f"{row['scenario']:<8}{row['receivers']:>4} receivers  {row['title']:<28}"
    failed = f"   {len(row['failures'])} failed: {row['failures'][-1]}" if row["failures"] else ""
    if row["left_out"]:
        return f"{start}left out: {row['left_out']}"
    if row["late"]:
        return f"{start}not done in {row['limit_seconds']:g} s{failed}"
    if not row["seconds"]:
        return f"{start}{'-':>8}{failed}"
    starting = statistics.mean(row["start_seconds"])
    carrying = statistics.mean(row["seconds"]) - starting
    share = f"{row['bytes'] * 8e-6 / carrying / row['rate_mbps']:>8.3f} of the link" if row["rate_mbps"] else ""
    rate = f"{row['bytes'] / 1e6 / carrying:>9.2f} MB/s"
    return f"{start}{starting:>8.2f} s start-up +{carrying:>8.2f} s{rate}{share}{failed}"
