"""Frames and messages of the control connections, and the datagrams of the optical transport.

Start with `messages.py` and `codec.py`. Imports errors and the layout of blocks.
"""
