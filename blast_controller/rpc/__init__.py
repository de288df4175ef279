"""The Thrift server with deferred replies.

Start with `handler.py`; `methods.py` lists the interface's methods, `call_context.py` is their way to the core. Imports
`runtime` and the generated `blast_api`.
"""
