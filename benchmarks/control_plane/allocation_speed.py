"""Run `blast_sim/papers/blast/measuring/allocation_speed.py`, whose docstring has the claims."""

from __future__ import annotations

from blast_sim.papers.blast.measuring.allocation_speed import main

if __name__ == "__main__":
    main()
