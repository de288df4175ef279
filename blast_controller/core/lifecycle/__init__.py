"""Lifecycle of parts from their grant to their end.

Start with `lifecycle.py`: the effect of each outcome of a reservation on its part.
"""
