"""SONiC OCS, the vendor-neutral model of optical circuit switches in SONiC, by gNMI or by Redis.

`model.py` has names and values, `state.py` the device's tables as its updates show them. `session.py` is the part of a
session that both protocols share; `gnmi_session.py` (with `gnmi_messages.py`) and `redis_session.py` (with
`redis_commands.py` and `redis_connection.py`) are the protocols. `driver.py` has the keys of the configuration.
"""
