"""The optimizer: a process of its own that thinks about decisions, and how it is asked.

Start with `process.py`; `worker.py` runs in the other process and imports `algorithms` only.
"""
