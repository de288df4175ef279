"""Pure algorithms: allocation, splitter trees, multicast trees. They know no controller, no clock and no socket.

Start with `b_matching/` (which groups get optical resources), `splitter_tree.py` and `scheduling/`; `power_budget.py`
and `leaf_assignment.py` concern light, `balanced/` the packet network. Imports nothing else of ours.
"""
