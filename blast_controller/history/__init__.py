"""The displayed state over time: moments, and the recording of all of them, bounded by size and age.

A moment (`moment.py`) is a published snapshot; `encoder.py` makes rows of what has changed in it, for the live page and
for the recorder. `recorder.py` writes them to a file of its own on a thread of its own, `reader.py` reads it again.
Imports the core's snapshots, and from `store` the lock of a file and its checksums.
"""
