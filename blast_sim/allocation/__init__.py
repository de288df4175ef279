"""Allocations of light: instances, workloads, and the optimiser run on them."""
