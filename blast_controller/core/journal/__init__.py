"""Requests and reservations as what the journal keeps.

Start with `bodies.py`. What is in the journal stays readable for later releases.
"""
