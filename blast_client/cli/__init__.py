"""The `blast` command: how it finds and starts sub-commands, and those on requests and for operators.

Imports `blast_client.api`. Start with `command.py`. Commands of other packages register at their entry points
(pyproject.toml), and share `options.py`, `failures.py` and `text_table.py`.
"""
