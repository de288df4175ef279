"""Received blocks: assembled of segments, verified by their digests, written to a target; in Python and compiled.

`store.py` and `assembly.py` are the reference; `compiled_store.py` and `compiled_assembly.py` call the engine.
"""
