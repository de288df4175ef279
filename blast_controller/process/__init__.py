"""The controller as a process: the construction of its parts in order, and its end.

`daemon.py` builds runtime, servers and drivers from a configuration: start there to see the parts of a controller.
`unix_process.py` has its signals, log and service manager. `blast_controller.cli` imports this package, and programs
that measure as the daemon runs import `garbage.py`.
"""
