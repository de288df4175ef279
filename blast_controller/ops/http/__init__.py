"""The HTTP side of the controller: health and metrics, for programs and people who only look.

Start with `application.py`; `access.py` decides which visitors may read. Imports `rpc.clients`.
"""
