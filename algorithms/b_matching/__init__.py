"""Hypergraph b-matching: selection of the multicast groups that get optical resources.

Start with `group.py` (the problem) and `greedy.py` (the paper's method); `optimizer.py` finds better selections,
`exact.py` is the reference. Imports nothing else of ours.
"""
