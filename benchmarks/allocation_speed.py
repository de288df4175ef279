"""`blast_sim/measuring/allocation_speed.py` under the name that it has beside the other benchmarks."""

from __future__ import annotations

import sys

from blast_sim.measuring.allocation_speed import main

if __name__ == "__main__":
    sys.exit(main())
