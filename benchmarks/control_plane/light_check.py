"""Claim: a grant takes p50 <= 25 ms with the paper's OCS, also with a light check before the grant.

The real controller has one outstanding request; the emulated OCS of each dialect has its vendor's switching time and
reports optical power at every output. The three settings of `light_check` alternate.

    .venv/bin/python benchmarks/control_plane/light_check.py --rounds 3 --requests 60
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict

from benchmarks.control_plane.child import print_json
from benchmarks.control_plane.cycles import load
from benchmarks.control_plane.rig import Rig, Size
from tl1_driver.dialects import DIALECTS

SETTINGS = ("off", "before_grant", "under_traffic")
USUAL = ["glimmerglass", "calient", "polatis"]
RACKS = 8
VENDORS_TIME = -1.0


def grants(dialect: str, setting: str, requests: int) -> dict[str, float]:
    """Return the latency of grants in milliseconds."""
    size = Size(RACKS, RACKS, VENDORS_TIME, keep_warm_ms=0, dialect=dialect, light_check=setting)
    with Rig(size) as rig:
        return dict(load(rig, "one", racks=RACKS, jobs=1, requests=requests)["grant_ms"])


def main() -> None:
    """Print one JSON line for each dialect and setting: the median over the rounds of each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds over the settings (default: 3)")
    parser.add_argument("--requests", type=int, default=60, help="requests of each round and setting (default: 60)")
    dialects = f"TL1 dialects (default: {' '.join(USUAL)})"
    parser.add_argument("--dialects", nargs="+", choices=sorted(DIALECTS), default=USUAL, help=dialects)
    options = parser.parse_args()
    for dialect in options.dialects:
        found: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
        for _ in range(options.rounds):
            for setting in SETTINGS:
                found[setting].append(grants(dialect, setting, options.requests))
        for setting, rounds in found.items():
            grant_ms = {name: round(statistics.median(one[name] for one in rounds), 2) for name in ("p50", "p99")}
            default = setting == DIALECTS[dialect].light_check
            line = {"dialect": dialect, "light_check": setting, "default": default, "grant_ms": grant_ms}
            print_json(line)


if __name__ == "__main__":
    main()
