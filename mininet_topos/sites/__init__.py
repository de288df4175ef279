"""Sites whose paths differ, on one machine: a rate for each pair of hosts, capacities, distance, shared links.

Start with `plan.py` and `sites.py`.
"""
