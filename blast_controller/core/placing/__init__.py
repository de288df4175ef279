"""From decisions of the policy to light trees: views of parts, and the placement of parts.

Start with `placements.py`: the policy's starts become light trees, or refusals.
"""
