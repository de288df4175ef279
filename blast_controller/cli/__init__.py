"""`blast controller` and `blast journal`: commands that start a controller, or look at what one has left.

Imports everything of the controller and the client's command line; nothing imports it. Start with `command.py`.
"""
