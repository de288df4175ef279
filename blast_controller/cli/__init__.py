"""`blast controller`, `blast journal` and `blast switch`: the commands of an operator.

Imports everything of the controller and the client's command line; nothing imports it. Start with `command.py`.
"""
