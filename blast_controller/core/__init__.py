"""The core: events and a time in, commands out. No socket, clock or thread.

Start with `controller.py`: it passes events to their handlers, decides once for all that came together, and
returns commands, records first. `assembly.py` puts the parts together; each folder may import those before it in the
list of tests/project/test_layout.py. Imports `algorithms` and nothing else of ours.
"""
