"""Which requests are known, who of them waits, and what happened to them.

Start with `request_table.py`.
"""
