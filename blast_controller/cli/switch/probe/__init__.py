"""Probing of a switch: which protocol it speaks, and which table of the configuration file fits it.

    probing.py              all steps in order
    discovery.py            connect without a login, and find the protocol of a peer
    first_bytes.py          the protocol of a peer by the bytes that it sends first
    suggestions.py          the driver for a protocol, and the error if another one was given
    settings.py             the options --set as a table of the configuration file
    attempts.py             open sessions with all settings that are left open
    readings.py             what a session reads
    host_key.py             the SSH host key of a peer
    failures.py             errors with their remedies
    report.py               readings and table together, with what they leave open
    configuration_table.py  a table as text of a configuration file
    views.py                the report as text and as JSON

Only reading commands are sent; the session by Redis also turns on keyspace notifications. Start with `probing.py`.
"""
