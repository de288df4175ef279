"""The transport `optical`: paced UDP multicast over a light path, which has no way back.

Start with `sender.py`: bursts within a window that the receivers' credit moves. `blast_transport/datagrams` sends and
receives.
"""
