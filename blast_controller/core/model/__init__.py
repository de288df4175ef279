"""The core's model: data, terms, and rules that follow from the data alone.

Start with `events.py` and `commands.py`, which are all that enters and leaves the core.
"""
