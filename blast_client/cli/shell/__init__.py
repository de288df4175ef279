"""Shell completion and manual pages, generated from the parsers of the `blast` command.

Start with `parsers.py`, which reads the parsers of all commands.
"""
