"""Where data comes from at the sender, and where it goes at a receiver: files, streams, commands, memory.

Start with `opening.py`: which engine stores what. `sources` and `targets` are the ends, `blocks` is in between.
"""
