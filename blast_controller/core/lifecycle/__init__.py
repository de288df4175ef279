"""Lifecycle of parts from their grant to their end.

Start with `lifecycle.py`: what each outcome of a reservation means for its part.
"""
