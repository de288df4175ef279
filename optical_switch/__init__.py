"""Optical circuit switches, whatever protocol they speak: ports, circuits, sessions, drivers and an emulated switch.

The controller's executor knows a switch only as a `SwitchSession` (`session.py`) that sets circuits (`model.py`) and
fails with the errors of `errors.py`. `drivers.py` lists the drivers: TL1 (`tl1_driver`), gNMI and Redis of SONiC
(`sonic_ocs`) and NETCONF (`netconf`). `emulator` is the hardware of an emulated switch, without a protocol.

May import `blast_base` only; drivers may import this package. Start with `session.py`.
"""
