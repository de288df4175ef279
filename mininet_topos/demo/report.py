"""The summary of the demo: a table, measurements, checks, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mininet_topos.demo.results import MeasuredTransfer, Results


def table(results: Results) -> list[str]:
    """Return the lines of the summary: measurements first, then checks."""
    held = sum(check.holds for check in results.checks)
    return [
        f"scale: {results.scale}",
        "",
        "MEASUREMENTS of this machine (no effect on the exit status):",
        "",
        f"{'transfer':<22}{'receivers':>10}{'MB':>8}{'s':>9}{'Mbit/s':>9}{'uplink copies':>15}{'core copies':>13}",
        *(_row(name, group) for name, group in _grouped(results.transfers)),
        "",
        *(f"info ({one.scene}) {one.name}: {one.quantity}" for one in results.measured),
        "",
        f"CHECKS: {held} of {len(results.checks)} passed",
        "",
        *(f"{'ok' if c.holds else 'FAIL':<5}({c.scene}) {c.claim}: {c.seen}" for c in results.checks),
    ]


def _grouped(transfers: Iterable[MeasuredTransfer]) -> list[tuple[str, list[MeasuredTransfer]]]:
    """Group numbered transfers (`optical-1`, `optical-2`, …) into one row."""
    groups: dict[str, list[MeasuredTransfer]] = {}
    for transfer in transfers:
        stem, _, number = transfer.name.rpartition("-")
        groups.setdefault(stem if number.isdecimal() else transfer.name, []).append(transfer)
    return list(groups.items())


def _row(name: str, group: list[MeasuredTransfer]) -> str:
    label = f"{name} (mean of {len(group)})" if len(group) > 1 else name
    seconds = sum(t.seconds for t in group) / len(group)
    first = group[0]
    uplink = "-" if first.uplink_copies is None else f"{max(t.uplink_copies or 0.0 for t in group):.3f}"
    core = max(t.core_share for t in group)
    rate, size = first.bytes * 8 / seconds / 1e6, first.bytes / 1e6
    return f"{label:<22}{first.receivers:>10}{size:>8.1f}{seconds:>9.3f}{rate:>9.1f}{uplink:>15}{core:>13.3f}"


def write_json(results: Results, path: Path) -> None:
    """Write all results as JSON, atomically."""
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(json.dumps(results.to_json(), indent=2) + "\n")
    scratch.replace(path)
