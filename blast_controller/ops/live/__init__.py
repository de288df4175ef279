"""The server side of the live page: sessions, updates to all pages, and actions of operators.

Start with `broadcast.py`: one encoding of each change for all pages.
"""
