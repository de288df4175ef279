"""Balanced multicasting: one multicast over several trees at once, whose rates share what the network can carry.

Start with `network.py` and `plan.py`; `best_trees.py` plans, `exact.py` is the reference, `fpfr.py` and `balancing.py`
are the paper's methods. Imports nothing else of ours.
"""
