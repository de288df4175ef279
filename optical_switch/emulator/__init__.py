"""The hardware of an emulated optical switch, without a protocol: crossbar, mirrors, losses, power monitors and faults.

`hardware.py` is what an agent drives: `tl1_driver.emulator` by TL1, `gnmi_target` by gNMI and Redis, `netconf_server`
by NETCONF. Each maps a `SwitchRefusal` to the codes of its protocol. The modules of this folder may import
`optical_switch.model` only. Start with `hardware.py`.
"""
