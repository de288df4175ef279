"""Scenarios run: their cells, groups and jobs on the flow-level simulation."""
