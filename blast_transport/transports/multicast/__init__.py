"""The transport `multicast`: UDP multicast over a packet network, at a rate that is fair to other traffic.

Start with `window.py`, the congestion control; `sender.py` and `receiver.py` apply it.
"""
