"""Execution on the optical switches: sessions, queues, isolation of refused changes, attenuators and light checks.

Start with `executor.py`: the session and the queue of each switch.
"""
