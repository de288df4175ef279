"""Clients of the controller: one call at a time (`client.py`) or many (`aio.py`), on the interface of `thrift/`.

Imports the generated `blast_api`, and addresses and credentials of `blast_transport`; every other part of
`blast_client` may import it.
Start with `client.py`; `calls.py`, `failover.py` and `freshness.py` are what both clients share.
"""
