"""The fabric as tables and pictures: `blast fabric show`, `svg` and `verify`.

Imports `blast_client.api` and `blast_client.cli`. Start with `commands.py`; `layout.py` places the parts of a picture,
`svg.py` draws them.
"""
