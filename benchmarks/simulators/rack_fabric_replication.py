"""Claim: the rack fabric replicates to all servers of up to 16 racks at line rate in its lossy class.

In a lossless class, it replicates at the rate that the surrogates' private buffers allow. The script writes
blast_sim/fabric/replication.toml, from which the flow-level simulator takes the rate of its method `rack-fabric`. The
result is the same on every machine.

    .venv/bin/python benchmarks/simulators/rack_fabric_replication.py [--out FILE]      # a minute
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from tqdm import tqdm

from blast_sim.fabric.replication import FILE, RACKS, row_of, scenario
from blast_sim.fabric.simulator import NoSimulatorError, program


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FILE, help="file to write (default: %(default)s)")
    args = parser.parse_args()
    try:
        command = [str(program()), "run", "-"]
    except NoSimulatorError as error:
        parser.error(str(error))
    lines = ["# Written by benchmarks/simulators/rack_fabric_replication.py: do not edit."]
    for lossless, word in ((False, "lossy"), (True, "lossless")):
        for racks in tqdm(RACKS, desc=word, disable=None, file=sys.stderr):
            text = json.dumps(scenario(racks, lossless))
            output = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
            row = row_of(racks, json.loads(output))
            lines += ["", f"[[{word}]]", *(f"{key} = {value}" for key, value in row.items())]
    args.out.write_text("\n".join(lines) + "\n")
    print(args.out.read_text(), end="")


if __name__ == "__main__":
    main()
