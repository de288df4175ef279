"""Balanced trees as a transport: planning, and adaptation to changes of the network.

Start with `planner.py`, the interface; the planner itself comes with `blast_sim`.
"""
