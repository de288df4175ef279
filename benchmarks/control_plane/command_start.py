"""Claim: `blast --version` and `blast --help` take at most 3 times as long as an interpreter with an empty program.

The commands alternate, so that a busy machine slows them equally; the result is their medians and ratios. Times do not
change the exit status; `tests/blast_client/test_command_start.py` checks that no heavy module is loaded.

    .venv/bin/python benchmarks/control_plane/command_start.py --repeats 40
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

from mininet_topos.lab.agents import BLAST

BAR = 3.0
BARE = "bare interpreter"
COMMANDS = {
    BARE: [sys.executable, "-c", "pass"],
    "blast --version": [BLAST, "--version"],
    "blast --help": [BLAST, "--help"],
    "blast status --help": [BLAST, "status", "--help"],
    "blast plan --help": [BLAST, "plan", "--help"],
}
WITH_BAR = ("blast --version", "blast --help")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20, help="rounds that count (default: 20)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    # The first round writes byte code.
    rounds = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in range(args.repeats + 1)][1:]
    medians = {name: statistics.median(one[name] for one in rounds) * 1000 for name in COMMANDS}
    ratios = {name: statistics.median(one[name] / one[BARE] for one in rounds) for name in COMMANDS}
    if args.json:
        print(json.dumps({"python": sys.version, "repeats": args.repeats, "ms": medians, "ratio": ratios}, indent=2))
        return
    print(f"Python {sys.version.split()[0]}, {args.repeats} rounds in turn")
    print(f"{'':<22}{'ms, median':>12}{'÷ bare':>9}")
    for name in COMMANDS:
        bar = f"  bar {BAR:g}{'' if ratios[name] <= BAR else '  MISSED'}" if name in WITH_BAR else ""
        print(f"{name:<22}{medians[name]:>12.1f}{ratios[name]:>9.2f}{bar}")


def seconds(command: list[str]) -> float:
    """Return the time of a command from start to end."""
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
