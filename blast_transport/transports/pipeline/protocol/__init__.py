"""Decisions of a chain's node, and its messages to neighbors: no sockets, no files, no clock.

Start with `core.py`, a node's decisions, and `messages.py`.
"""
