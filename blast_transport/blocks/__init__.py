"""Blocks of a file or stream: layout, map of held blocks, and digests.

Start with `layout.py`: how bytes become blocks and segments.
"""
