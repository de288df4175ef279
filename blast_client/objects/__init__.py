"""Encoding of objects in standard file formats, and memory-mapped decoding, without pickle.

Start with `encoding.py`; `receiving.py` is the other end. Imports `blast_client.api`.
"""
