"""Claims: the lab and the flow simulator agree on completion times.

They agree within 15 % on the mean completion time of the same scaled trace, and within 10 % on the time of a pipeline
of real hosts.

trace      A trace is folded onto eight racks with scaled bytes. `blast lab replay` replays it with the real controller,
           emulated devices and real data, `blast sim replay` with the racks, splitters, switching delay and payload
           rate of the lab. The simulator does not model connections, confirmations of receivers and the speed of this
           machine. Two minutes.
pipelines  Files of several sizes are sent along chains of hosts in network namespaces, also with one slow hop, and the
           simulator models the same transfers (`benchmarks/transfers/bed/modeled.py`). Ten minutes.

As root, on an idle machine:

    .venv/bin/python benchmarks/simulators/lab_against_simulator.py
    .venv/bin/python benchmarks/simulators/lab_against_simulator.py --only pipelines --rates 50,100

Exit status 1 if data did not arrive intact; differences do not change the exit status.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from typing import Any

from benchmarks import machine
from benchmarks.transfers.bed import modeled, script
from blast_sim.base.options import counts
from blast_sim.base.report import as_table
from mininet_topos.lab.agents import BLAST

PARTS = ("trace", "pipelines")
MAX_DIFFERENCE = 0.15
SPLITTERS, FAN_OUT = 2, 4


def main() -> bool:
    """Measure and print; return whether all data arrived intact."""
    parser = machine.parser(__doc__)
    parser.add_argument(
        "--only", type=script.some_of(PARTS), default=list(PARTS), help=f"parts: {','.join(PARTS)} (default: all)"
    )
    parser.add_argument("--trace", default="sample", help="coflow trace (default: sample)")
    parser.add_argument("--first", default="30", metavar="N", help="number of multicasts (default: 30)")
    parser.add_argument("--scale", default="40", metavar="S", help="divisor of bytes (default: 40)")
    parser.add_argument("--speed", default="1", metavar="F", help="factor of the arrival rate (default: 1)")
    parser.add_argument("--policy", default="paper,srpt-lease", metavar="NAME,NAME")
    parser.add_argument("--hops", type=counts, default=[3, 7], metavar="N,N", help="hops of pipelines (default: 3,7)")
    rates = "of their links (default: 50,100,400)"
    parser.add_argument("--rates", type=counts, default=[50, 100, 400], metavar="MBPS,MBPS", help=rates)
    sizes = "sizes of files in MB (default: 1,10,100)"
    parser.add_argument("--megabytes", type=counts, default=[1, 10, 100], metavar="N,N", help=sizes)
    parser.add_argument("--repeats", type=script.count, default=3, help="transfers of each pipeline (default: 3)")
    args = parser.parse_args()
    found: dict[str, Any] = {}
    tables, intact = [], True
    if "trace" in args.only:
        rows, lab, simulated = replayed(args)
        found |= {"rows": rows, "lab": lab, "simulator": simulated}
        intact = lab["intact"] == sum(row["multicasts"] for row in lab["policies"])
        tables.append(as_table(rows))
    if "pipelines" in args.only:
        even = [modeled.Chain(hops, rate) for hops in args.hops for rate in args.rates]
        slow = [modeled.with_slow_hop(chain) for chain in even if chain.by_packet]
        found["pipelines"] = list(modeled.rows([*even, *slow], args.megabytes, args.repeats))
        intact = intact and all(row["real_s"] is not None for row in found["pipelines"])
        tables.append(as_table(found["pipelines"]))
    machine.show(args.json, found, tables)
    return intact


def replayed(args: argparse.Namespace) -> tuple[list[dict[str, Any]], Any, Any]:
    """Return a row for each policy, and the output of lab and simulator."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/scaled.txt"
        scaling = ("--volume", "maximum", "--first", args.first, "--scale", args.scale, "--speed", args.speed)
        blast("lab", "replay", args.trace, *scaling, "--write-scaled", file)
        replay = ("replay", file, "--volume", "maximum", "--policy", args.policy, "--json")
        lab = json.loads(blast("lab", *replay, "--scale", "1", "--splitters", f"{FAN_OUT}x{SPLITTERS}"))
        network = [*replay, *network_of(lab)]
        simulated = json.loads(blast("sim", *network))
    return [compared(*both) for both in zip(lab["policies"], simulated["policies"], strict=True)], lab, simulated


def network_of(lab: Any) -> list[str]:
    """Return the options of the simulator for the network of the lab."""
    network = lab["network"]
    options = {
        "--servers-per-rack": network["servers_per_rack"],
        "--server-gbps": network["server_gbps"],
        "--uplink-gbps": network["uplink_gbps"],
        "--light-gbps": lab["light"]["payload_gbps"],
        "--splitters": SPLITTERS,
        "--fan-out": FAN_OUT,
        # The switch that the lab emulates.
        "--switch": "glimmerglass",
    }
    return [str(word) for pair in options.items() for word in pair]


def blast(*words: str) -> str:
    """Return the output of a command. Raises CalledProcessError if it has none."""
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
    script.run(main)
