"""The description of the machine, and the options and output that all scripts share."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blast_sim.base.text import table
from blast_sim.papers.blast.measuring import machine


def describe() -> str:
    """Return CPU, cores, kernel, Python and Open vSwitch in one line."""
    version = subprocess.run(["ovs-vsctl", "--version"], capture_output=True, text=True, check=True).stdout
    return machine.describe(version.split("\n")[0])


def parser(text: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option `--json`, which all scripts have."""
    result = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return result


def progress(text: str) -> None:
    """Overwrite the line of progress."""
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def as_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as a table, numbers with three digits."""
    return table(list(rows[0]), [[_cell(value) for value in row.values()] for row in rows])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


def show(as_json: bool, found: dict[str, Any], lines: Iterable[str]) -> None:
    """Print the results as JSON, or these lines, with the machine first."""
    print(json.dumps({"machine": describe(), **found}, indent=2) if as_json else "\n".join([describe(), *lines]))
