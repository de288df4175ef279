"""Claim: a grant takes p50 <= 25 ms with the paper's switch, also when the controller checks for light before it.

The real controller, one request outstanding, the emulated switch of each dialect with its vendor's switching time,
light at every output. The three settings of `light_check` take turns.

    .venv/bin/python benchmarks/light_check.py --rounds 3 --requests 60
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict

from child import tell
from control_plane import load
from control_plane_rig import Rig, Size

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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--dialects", nargs="+", choices=sorted(DIALECTS), default=USUAL)
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
            tell(line)


if __name__ == "__main__":
    main()
