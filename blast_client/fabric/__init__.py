"""The fabric as tables and pictures: `blast fabric show`, `svg` and `verify`.

Imports `blast_base`, `blast_client.api` and `blast_client.cli`. Start with `commands.py`; `svg.py` draws what
`blast_base/drawing` lays out.
"""
