"""Allocations of light: instances, workloads, and the optimizer run on them.

Start with `instance.py` (the problem) and `allocate.py`.
"""
