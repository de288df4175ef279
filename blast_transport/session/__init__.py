"""One session between a sender and many receivers, over whatever transports there are.

Start with `sender_core.py` and `receiver_core.py`, which decide without sockets or clocks; `transfer.py` and
`receiver_session.py` drive them.
"""
