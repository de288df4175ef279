"""TL1: codec, session, asyncio client, dialects, and an emulated optical switch.

Start with `client.py`. Imports nothing else of ours.
"""
