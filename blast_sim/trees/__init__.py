"""Balanced trees between sites, planned from a file of a network.

Start with `trees_plan.py`.
"""
