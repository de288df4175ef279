"""Scheduling: which part is served next with which resources, and which trees stay warm.

Start with `dispatcher.py`, which tells the policy of changes and asks it; `tree_planner.py` chooses ports and
splitters.
"""
