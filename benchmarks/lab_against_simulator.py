"""Claim: on the same scaled trace, lab and flow simulator agree on the mean completion time within 15 %.

A trace is folded onto eight racks, its bytes divided, and replayed by `blast lab replay` with the real controller,
devices and data, and by `blast sim replay` with the racks, splitters, switching delay and payload rate of the lab. The
simulator does not know connections, confirmations of receivers and the speed of this machine. As root, two minutes, on
an idle machine:

    .venv/bin/python benchmarks/lab_against_simulator.py

Exit status 1 if data did not arrive intact; the difference does not decide.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import machine

from blast_sim.base.report import as_table
from mininet_topos.agents import BLAST

MAX_DIFFERENCE = 0.15
SPLITTERS, FAN_OUT = 2, 4


def main() -> int:
    """Replay and print."""
    parser = machine.parser(__doc__)
    parser.add_argument("--trace", default="sample", help="a coflow trace (default: sample)")
    parser.add_argument("--first", default="30", metavar="N", help="multicasts (default: 30)")
    parser.add_argument("--scale", default="40", metavar="S", help="of bytes (default: 40)")
    parser.add_argument("--speed", default="1", metavar="F", help="of arrivals (default: 1)")
    parser.add_argument("--policy", default="paper,srpt-lease", metavar="NAME,NAME")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/scaled.txt"
        scaling = ("--volume", "maximum", "--first", args.first, "--scale", args.scale, "--speed", args.speed)
        blast("lab", "replay", args.trace, *scaling, "--write-scaled", file)
        replay = ("replay", file, "--volume", "maximum", "--policy", args.policy, "--json")
        lab = json.loads(blast("lab", *replay, "--scale", "1", "--splitters", f"{FAN_OUT}x{SPLITTERS}"))
        network = [*replay, *network_of(lab)]
        simulated = json.loads(blast("sim", *network))
    rows = [compared(*both) for both in zip(lab["policies"], simulated["policies"], strict=True)]
    machine.show(args.json, {"rows": rows, "lab": lab, "simulator": simulated}, [as_table(rows)])
    return int(lab["intact"] != sum(row["multicasts"] for row in lab["policies"]))


def network_of(lab: Any) -> list[str]:
    """Return the options of the simulator for the network of the lab."""
    network = lab["network"]
    options = {
        "--servers-per-rack": network["servers_per_rack"],
        "--server-gbps": network["server_gbps"],
        "--uplink-gbps": network["uplink_gbps"],
        "--light-gbps": lab["light"]["payload_gbps"],
        "--splitters": SPLITTERS,
        "--ways": FAN_OUT,
        # The switch that the lab emulates.
        "--switch": "glimmerglass",
    }
    return [str(word) for pair in options.items() for word in pair]


def blast(*words: str) -> str:
    """Return the output of a command. Raises CalledProcessError if there is none."""
    done = subprocess.run([BLAST, *words], check=False, stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        done.check_returncode()
    return done.stdout


def compared(lab: Any, simulated: Any) -> dict[str, Any]:
    """Return the row of a policy; `later` is the median delay of a multicast in the lab."""
    later = [
        ours["seconds"] - theirs["seconds"]
        for ours, theirs in zip(lab["completions"], simulated["completions"], strict=True)
    ]
    ratio = lab["mean_seconds"] / simulated["mean_seconds"]
    statistic = ("mean", "median", "p95")
    return {
        "policy": lab["policy"],
        "multicasts": lab["multicasts"],
        "ratio": ratio,
        "claim_kept": abs(ratio - 1) <= MAX_DIFFERENCE,
        **{f"lab_{name}_s": lab[f"{name}_seconds"] for name in statistic},
        **{f"simulator_{name}_s": simulated[f"{name}_seconds"] for name in statistic},
        "later_s": statistics.median(later),
    }


if __name__ == "__main__":
    sys.exit(main())
