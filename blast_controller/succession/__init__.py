"""Several controllers with one leader: following it, taking over from it, and stepping down.

Start with `succession.py`; `candidate.py` campaigns and leads, `following.py` reads what another leader decides.
Imports the store.
"""
