"""Capacities of the network between hosts, and their sources.

Sources are agents that measure them, the controller, a file, or an external monitor. Each source returns `Capacities`;
`blast trees` reads their JSON form. Start with `capacities.py`.
"""
