"""Traces of clusters as multicasts and shuffles between racks.

Start with `workload.py`, the form of all traces; `loading.py` recognizes their files.
"""
