"""Scheduling: which part is served next with which resources, and which trees stay warm.

Start with `dispatcher.py`, which reports changes to the policy and requests its decisions; `tree_planner.py`
chooses ports and splitters.
"""
