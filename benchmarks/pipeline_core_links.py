"""Claim: a pipeline that is ordered by racks carries the file over each link of the core at most 1.05 times each way;
in random order, which is shown beside it, it does so many times.

Four racks of four hosts, each with one link to the core, the sender in the first; bytes are those of the interfaces,
with all headers, control and acknowledgements. A pipeline goes along the natural order of the names that its nodes are
given, as in Kascade. As root:

    .venv/bin/python benchmarks/pipeline_core_links.py                     # half a minute

Exit status 1 if the bar is missed.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import machine
from transport_bed import script
from transport_bed.bed import Bed, Plan
from transport_bed.struck import struck_transfer
from transport_bed.tools.blast import BlastPipeline

RACKS, HOSTS = 4, 4
BAR = 1.05
_LIMIT_SECONDS = 120.0


def main() -> bool:
    """Measure and print; whether the bar was kept."""
    args = script.parser(__doc__, megabytes=50, repeats=3).parse_args()
    racks = tuple(tuple(range(rack * HOSTS, (rack + 1) * HOSTS)) for rack in range(RACKS))
    plan = Plan(RACKS * HOSTS - 1, racks=racks, light=False)
    with script.bed_and_file(plan, args.megabytes * 1_000_000) as (bed, source):
        rows = [_measure(bed, source, "by racks", list(plan.hosts[1:]))]
        for seed in range(args.repeats):
            order = random.Random(seed).sample(plan.hosts[1:], plan.receivers)
            rows.append(_measure(bed, source, f"random, seed {seed}", order))
    if args.json:
        print(json.dumps({"machine": machine.describe(), "megabytes": args.megabytes, "rows": rows}, indent=2))
    else:
        print(machine.describe())
        print(f"{RACKS} racks of {HOSTS} hosts, {args.megabytes} MB: bytes on each rack's link to the core ÷ size")
        print(f"{'order':<18}" + "".join(f"{f'rack {rack} up':>12}{'down':>8}" for rack in range(RACKS)))
        print("\n".join(map(_line, rows)))
    return not any(row["wrong"] for row in rows) and rows[0]["most"] <= BAR


def _measure(bed: Bed, source: Path, words: str, order: list[int]) -> dict[str, Any]:
    tool = BlastPipeline()
    tool.names = {receiver: f"n{place}" for place, receiver in enumerate(order, 1)}
    before = bed.core_bytes()
    struck = struck_transfer(tool, bed, source, limit_seconds=_LIMIT_SECONDS)
    size = source.stat().st_size
    links = [
        [(after - earlier) / size for earlier, after in zip(*both, strict=True)]
        for both in zip(before, bed.core_bytes(), strict=True)
    ]
    return {"order": words, "links": links, "most": max(map(max, links)), "wrong": list(struck.wrong)}


def _line(row: dict[str, Any]) -> str:
    links = "".join(f"{up:>12.3f}{down:>8.3f}" for up, down in row["links"])
    missed = f"   bar {BAR:g}{'' if row['most'] <= BAR else '  MISSED'}" if row["order"] == "by racks" else ""
    return f"{row['order']:<18}{links}{missed}" + "".join(f"\n    wrong: {sentence}" for sentence in row["wrong"])


if __name__ == "__main__":
    script.run(main)
