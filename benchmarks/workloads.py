"""The workloads of the benchmarks: those of `blast_sim`, under the name that the scripts beside this one use."""

from blast_sim.allocation.papers_mixture import apart, sharing
from blast_sim.allocation.workloads import FAMILIES, MIXED_POOLS, Edge, Instance, instance

__all__ = ["FAMILIES", "MIXED_POOLS", "Edge", "Instance", "apart", "instance", "sharing"]
