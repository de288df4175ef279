"""Run `blast_sim/papers/blast/measuring/allocation_quality.py`, whose docstring has the claims."""

from __future__ import annotations

import sys

from blast_sim.papers.blast.measuring.allocation_quality import main

if __name__ == "__main__":
    sys.exit(main())
