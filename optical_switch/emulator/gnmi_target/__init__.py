"""An emulated optical circuit switch that runs SONiC: CONFIG_DB and STATE_DB in a real Redis, and gNMI over gRPC.

Theory of operation. As on a real device three parts share nothing but the databases. The service (`service.py`) checks
a gNMI `Set` against the model (`edits.py`) and writes it to CONFIG_DB in one transaction. The agent (`agent.py`) reads
CONFIG_DB after each change of it by any writer, drives the emulated hardware, and writes the states of ports and
cross-connects to STATE_DB. The service answers `Get` from the databases and serves subscriptions from copies that
follow the databases (`mirror.py`). An accepted `Set` is therefore not in effect yet: STATE_DB shows when it is.

With the mixed schema of SONiC's design of the gNMI server (`doc/mgmt/gnmi` of sonic-net/SONiC, section 1.2.1.3), which
current servers have, the origin `sonic-db` addresses a database: the first elements of a path are the database and the
instance. A target that announces the model `sonic-db` takes changes of databases in no other way.

The databases follow the model `sonic-ocs` (revision 2024-11-21), the RPCs gNMI 0.10; the RPC `bulk-update` of the model
is missing, because gNMI defines no way to call an RPC of a model. Port `nA` is input n, `nB` is output n. There are no
power meters: the faults that concern them have no effect. Start with `target.py`.
"""
