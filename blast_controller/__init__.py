"""The controller: a pure core and the shells around it.

Start with `process/daemon.py`, which puts everything together, and `core/controller.py`, which decides. The shells
around the core do not import each other.
"""
