"""Authentication: credentials of both ends, and connections whose ends are authenticated.

Start with `admission.py`: both ends of a connection until each knows the other.
"""
