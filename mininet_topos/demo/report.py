"""The end of the demo: a table, the picture's place, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from mininet_topos.demo.results import Results, Transfer


def table(results: Results) -> list[str]:
    """The summary, as lines: first what is only told, then what decides."""
    held = sum(check.holds for check in results.checks)
    return [
        f"scale: {results.scale}",
        "",
        "MEASURED on this machine, told only:",
        "",
        f"{'transfer':<22}{'receivers':>10}{'MB':>8}{'s':>9}{'Mbit/s':>9}{'uplink copies':>15}{'core copies':>13}",
        *(_row(name, group) for name, group in _grouped(results.transfers)),
        "",
        *(f"told ({one.scene}) {one.what}: {one.quantity}" for one in results.measured),
        "",
        f"CHECKED, which alone decides: {held} of {len(results.checks)} hold",
        "",
        *(f"{'ok' if c.holds else 'FAIL':<5}({c.scene}) {c.claim}: {c.seen}" for c in results.checks),
    ]


def _grouped(transfers: Iterable[Transfer]) -> list[tuple[str, list[Transfer]]]:
    """Numbered transfers (`light-1`, `light-2`, …) share a row."""
    groups: dict[str, list[Transfer]] = {}
    for transfer in transfers:
        stem, _, number = transfer.name.rpartition("-")
        groups.setdefault(stem if number.isdecimal() else transfer.name, []).append(transfer)
    return list(groups.items())


def _row(name: str, group: list[Transfer]) -> str:
    label = f"{name} (mean of {len(group)})" if len(group) > 1 else name
    seconds = sum(t.seconds for t in group) / len(group)
    first = group[0]
    uplink = "-" if first.uplink_copies is None else f"{max(t.uplink_copies or 0.0 for t in group):.3f}"
    core = max(t.core_share for t in group)
    rate, size = first.bytes * 8 / seconds / 1e6, first.bytes / 1e6
    return f"{label:<22}{first.receivers:>10}{size:>8.1f}{seconds:>9.3f}{rate:>9.1f}{uplink:>15}{core:>13.3f}"


def write_json(results: Results, path: Path) -> None:
    """All figures, written whole or not at all."""
    scratch = path.with_name(path.name + ".part")
    scratch.write_text(json.dumps(results.to_json(), indent=2) + "\n")
    scratch.replace(path)
