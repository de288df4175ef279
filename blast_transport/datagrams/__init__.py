"""Datagrams to a multicast group at both ends: sockets, super-packets, pacing, and the path into a store.

Start with `bursts.py`, which sends, and `intake.py`, which receives. `compiled_bursts.py` and `compiled_intake.py` do
the same without Python's lock.
"""
