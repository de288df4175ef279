"""The parts of `benchmarks/regress.py`: rows and eras, worktrees, runs, and the comparison of their readings."""
