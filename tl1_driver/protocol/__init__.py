"""TL1 (Telcordia GR-831) without sockets, clocks or dialects: bytes, messages, and the session as a state machine.

Start with `session.py`: commands and time in, bytes and events out. `codec.py` reads and writes messages. Imports
nothing of ours; dialects, client and emulator build on it.
"""
