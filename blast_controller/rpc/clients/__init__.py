"""Identities of clients, their permissions, and their rate limits.

Start with `gate.py`: every call passes it.
"""
