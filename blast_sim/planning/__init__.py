"""Fabric planning: prices, hardware, the optimization program, static trees.

Start with `fabric_plan.py`: fabrics that are worth their price for a workload.
"""
