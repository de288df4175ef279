"""The HTTP side of the controller: health and metrics, for programs and people who only look.

Start with `application.py`; `access.py` decides who may look. Imports identities of clients from `rpc.clients`.
"""
