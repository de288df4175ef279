"""The journal: the controller's intentions and actions, durable before any device receives a command.

Start with `interface.py`; `sqlite.py` is the store of one controller, `etcd/` that of several.
"""
