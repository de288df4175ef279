"""Median milliseconds of a command from its start to its end, after one start that writes byte code.

For commits without `benchmarks/command_start.py`, which measures the same quantity in the same way.

    {python} start_up.py 20 blast --version
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time


def main() -> None:
    """Measure and print one JSON object."""
    repeats, command = int(sys.argv[1]), sys.argv[2:]
    seconds = [_seconds(command) for _ in range(repeats + 1)][1:]
    print(json.dumps({"milliseconds": statistics.median(seconds) * 1000}))


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
