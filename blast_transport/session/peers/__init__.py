"""The receivers of a session as their sender sees them: state, window, and missing blocks of each.

Start with `peer.py`, the states of a receiver; `readmission.py` lets one that was too slow back, `stragglers.py`
decides who delays all others.
"""
