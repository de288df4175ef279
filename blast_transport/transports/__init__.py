"""Interface and implementations of the transports, at both ends.

Start with `sending.py` and `receiving.py`, the interfaces; `choices.py` names the transports.
"""
