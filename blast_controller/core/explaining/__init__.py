"""Why a request waits, when it could start, and what would help.

Start with `prospect.py`. Looks at the other parts of the core and changes nothing.
"""
