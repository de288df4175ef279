"""Connections between hosts: dialing, accepting, admission, and framing.

Start with `control_connection.py`; `connection_limits.py` bounds the cost of unauthenticated peers.
"""
