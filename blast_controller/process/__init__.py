"""The controller as a process: what is built, in which order, and how it ends.

`daemon.py` builds runtime, servers and drivers from a configuration: start there to see what a controller consists of.
`unix_process.py` has its signals, log and service manager. Only `blast_controller.cli` imports this package.
"""
