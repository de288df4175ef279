"""The Thrift server with deferred replies.

Start with `handler.py`; `methods.py` lists the interface's methods, `call_context.py` gives them the core. Imports
`runtime` and the generated `blast_api`.
"""
