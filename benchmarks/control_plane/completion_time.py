"""Run `blast_sim/papers/blast/measuring/completion_time.py`, whose docstring has the claims."""

from __future__ import annotations

from blast_sim.papers.blast.measuring.completion_time import main

if __name__ == "__main__":
    main()
