"""Immutable snapshots of the core for readers; each shares unchanged data with its predecessor.

Start with `publisher.py`.
"""
