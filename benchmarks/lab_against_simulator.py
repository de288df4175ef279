"""Claim: on the same scaled trace, lab and flow simulator agree on the mean completion time within 15 %.

A trace is folded onto eight racks, its bytes divided, written, and replayed by both commands: by `blast lab replay`
with the real controller, devices and data, and by `blast sim replay` with the lab's racks, splitters, switching delay
and the share of its light that carries data. What the simulator does not know is connections, verdicts of receivers
and this machine's own speed; as an experiment on what is left between the two it is run once more with the lower
quartile of how much later multicasts are complete in the lab, for every decision. Run as root, two minutes, on a
machine that does nothing else:

    .venv/bin/python benchmarks/lab_against_simulator.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine

from blast_sim.base.report import as_table

BLAST = str(Path(sysconfig.get_path("scripts")) / "blast")
MOST_APART = 0.15
SPLITTERS, WAYS = 2, 4


def main() -> int:
    """Replay twice and print; 1 if data did not arrive intact. How far apart the means are is told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", default="sample", help="a coflow trace (default: sample)")
    parser.add_argument("--first", default="30", metavar="N", help="multicasts (default: 30)")
    parser.add_argument("--scale", default="40", metavar="S", help="of bytes (default: 40)")
    parser.add_argument("--speed", default="1", metavar="F", help="of arrivals (default: 1)")
    parser.add_argument("--policy", default="paper,srpt-lease", metavar="NAME,NAME")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/scaled.txt"
        scaling = ("--volume", "maximum", "--first", args.first, "--scale", args.scale, "--speed", args.speed)
        blast("lab", "replay", args.trace, *scaling, "--write-scaled", file)
        lab = in_the_lab(file, args.policy)
        simulated = in_the_simulator(file, args.policy, lab)
        cost = cost_of_a_transfer(lab, simulated)
        slower = in_the_simulator(file, args.policy, lab, "--compute", str(1000 * cost))
    whole = zip(lab["policies"], simulated["policies"], slower["policies"], strict=True)
    rows = [compared(ours, theirs, with_cost, cost) for ours, theirs, with_cost in whole]
    if args.json:
        both = {"lab": lab, "simulator": simulated}
        print(json.dumps({"machine": machine.describe(), "rows": rows, **both}, indent=1))
    else:
        print(machine.describe(), as_table(rows), sep="\n\n")
    intact = lab["intact"] == sum(row["multicasts"] for row in lab["policies"])
    return 0 if intact else 1


def in_the_lab(file: str, policy: str) -> Any:
    """What `blast lab replay` tells."""
    light = ("--splitters", f"{WAYS}x{SPLITTERS}")
    return json.loads(blast("lab", "replay", file, *reading(policy), "--scale", "1", *light))


def in_the_simulator(file: str, policy: str, lab: Any, *more: str) -> Any:
    """What `blast sim replay` tells of the same on the lab's network."""
    network = lab["network"]
    same = {
        "--servers-per-rack": network["servers_per_rack"],
        "--server-gbps": network["server_gbps"],
        "--uplink-gbps": network["uplink_gbps"],
        "--light-gbps": lab["light"]["payload_gbps"],
        "--splitters": SPLITTERS,
        "--ways": WAYS,
        # What the lab's optical switch emulates.
        "--switch": "glimmerglass",
    }
    options = [str(word) for pair in same.items() for word in pair]
    return json.loads(blast("sim", "replay", file, *reading(policy), *options, *more))


def reading(policy: str) -> Sequence[str]:
    """The options that read a scaled trace."""
    return ("--volume", "maximum", "--policy", policy, "--json")


def blast(*words: str) -> str:
    """What a command prints. Raises CalledProcessError where that is nothing."""
    done = subprocess.run([BLAST, *words], check=False, stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        done.check_returncode()
    return done.stdout


def cost_of_a_transfer(lab: Any, simulated: Any) -> float:
    """Seconds by which three of four multicasts are complete later in the lab: those that hardly waited for others."""
    pairs = zip(lab["policies"], simulated["policies"], strict=True)
    later = [seconds for ours, theirs in pairs for seconds in differences(ours, theirs)]
    return max(0.0, statistics.quantiles(later, n=4)[0])


def differences(lab: Any, simulated: Any) -> list[float]:
    """Seconds by which each multicast is complete later in the lab."""
    pairs = zip(lab["completions"], simulated["completions"], strict=True)
    return [ours["seconds"] - theirs["seconds"] for ours, theirs in pairs]


def compared(lab: Any, simulated: Any, slower: Any, cost: float) -> dict[str, Any]:
    """A policy in both; `later` is the median over multicasts, `with_cost` the simulator at `cost` a decision."""
    return {
        "policy": lab["policy"],
        "multicasts": lab["multicasts"],
        "lab_mean_s": lab["mean_seconds"],
        "simulator_mean_s": simulated["mean_seconds"],
        "ratio": (ratio := lab["mean_seconds"] / simulated["mean_seconds"]),
        "claim_kept": abs(ratio - 1) <= MOST_APART,
        "lab_median_s": lab["median_seconds"],
        "simulator_median_s": simulated["median_seconds"],
        "lab_p95_s": lab["p95_seconds"],
        "simulator_p95_s": simulated["p95_seconds"],
        "later_s": statistics.median(differences(lab, simulated)),
        "cost_s": cost,
        "ratio_with_cost": lab["mean_seconds"] / slower["mean_seconds"],
    }


if __name__ == "__main__":
    sys.exit(main())
