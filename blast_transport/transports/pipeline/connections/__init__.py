"""Connections between the nodes of a chain, and data transfer between a connection and the store.

Start with `feed.py`, the connection from which data comes, and `pump.py`, which passes it on.
"""
