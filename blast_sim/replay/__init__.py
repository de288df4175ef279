"""Traces at full size on a simulated network, with the project's own controller core.

Start with `player.py`, which plays a trace, and `setting.py`, its settings.
"""
