"""Where the sender's bytes come from: files, folders, streams, memory. `source.py` is the interface."""
