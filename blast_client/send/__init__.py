"""Delivery of data to many hosts: `broadcast`, `blast send` and `blast sender`.

Combines the controller's grants (`blast_client.api`) with the data plane (`blast_transport`). Start with `round.py`:
request, transfer over the optical path or packets, confirmation, release.
"""
