"""Flow-level simulation: transfers that share links max-min fairly, event by event.

Start with `engine.py`: the next event, and the rates until then. Imports `fair`.
"""
