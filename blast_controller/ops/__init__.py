"""Operation of the controller: logs, the service manager, metrics, and the live page.

Start with `activity_log.py` and `metering.py`, observers of the runtime. Imports the core.
"""
