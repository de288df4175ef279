"""Claim: a pipeline ordered by racks sends the file over each core link at most 1.05 times in each direction.

A pipeline in random order, measured for comparison, sends it several times. Four racks have four hosts each, with the
sender in the first, and one link to the core each. Bytes are counted at the interfaces, and include headers, control
messages and acknowledgments. As root:

    .venv/bin/python benchmarks/transfers/pipeline_core_links.py                     # half a minute

Exit status 1 if the bar is missed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.transfers.bed import script
from benchmarks.transfers.bed.bed import Bed, Plan
from benchmarks.transfers.bed.struck import struck_transfer
from benchmarks.transfers.bed.tools.blast import BlastPipeline

RACKS, HOSTS = 4, 4
BAR = 1.05


def main() -> bool:
    """Measure and print; return whether the result meets the bar."""
    args = script.parser(__doc__, megabytes=50, repeats=3).parse_args()
    racks = tuple(tuple(range(rack * HOSTS, (rack + 1) * HOSTS)) for rack in range(RACKS))
    plan = Plan(RACKS * HOSTS - 1, racks=racks, light=False)
    with script.bed_and_file(plan, args.megabytes * 1_000_000) as (bed, source):
        rows = [_measure(bed, source, "by racks", list(plan.hosts[1:]))]
        for seed in range(args.repeats):
            order = random.Random(seed).sample(plan.hosts[1:], plan.receivers)
            rows.append(_measure(bed, source, f"random, seed {seed}", order))
    head = f"{RACKS} racks of {HOSTS} hosts, {args.megabytes} MB: bytes on each rack's link to the core ÷ size"
    columns = f"{'order':<18}" + "".join(f"{f'rack {rack} up':>12}{'down':>8}" for rack in range(RACKS))
    machine.show(args.json, {"megabytes": args.megabytes, "rows": rows}, [head, columns, *map(_line, rows)])
    return not any(row["wrong"] for row in rows) and rows[0]["most"] <= BAR


def _measure(bed: Bed, source: Path, words: str, order: list[int]) -> dict[str, Any]:
    tool = BlastPipeline()
    tool.names = {receiver: f"n{place}" for place, receiver in enumerate(order, 1)}
    before, size = bed.core_bytes(), source.stat().st_size
    struck = struck_transfer(tool, bed, source, limit_seconds=120.0)
    links = [
        [(after - earlier) / size for earlier, after in zip(*both, strict=True)]
        for both in zip(before, bed.core_bytes(), strict=True)
    ]
    return {"order": words, "links": links, "most": max(map(max, links)), "wrong": list(struck.wrong)}


def _line(row: dict[str, Any]) -> str:
    links = "".join(f"{up:>12.3f}{down:>8.3f}" for up, down in row["links"])
    missed = f"   bar {BAR:g}{'' if row['most'] <= BAR else '  MISSED'}" if row["order"] == "by racks" else ""
    return "\n    wrong: ".join([f"{row['order']:<18}{links}{missed}", *row["wrong"]])


if __name__ == "__main__":
    script.run(main)
