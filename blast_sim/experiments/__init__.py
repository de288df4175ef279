"""Scenarios run: their cells, groups and jobs on the flow-level simulation.

Start with `run.py`: a scenario becomes cells, and a cell a simulation.
"""
