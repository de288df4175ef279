"""Where a receiver's bytes go: files, folders, devices, commands, memory. `target.py` is the interface."""
