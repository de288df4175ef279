"""Requests and reservations as what the journal keeps.

Start with `bodies.py`. Later releases can read these bodies, too.
"""
