"""Allocations of light: instances, workloads, and the optimizer run on them."""
