"""The command `blast switch`: decodes transcripts of optical switches, and probes a switch for its configuration table.

It may import every package that it needs, as the other commands do; nothing imports it. Start with `command.py`.
"""
