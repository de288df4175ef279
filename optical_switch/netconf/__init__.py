"""NETCONF (RFC 6241) over SSH to an optical switch, with the model of Polatis switches.

    driver.py           keys in the configuration
    netconf_session.py  the session on asyncio and SSH
    link.py             bytes, timers and waiting callers of a session
    session.py          hello, requests and deadlines, without a socket or clock
    transaction.py      one change of the configuration: lock, read, edit, commit, unlock
    transitions.py      what follows each answer during a change
    features.py         what a device announces in its hello
    polatis.py          the device's model: port numbers, circuits, the ports that an error names
    polatis_ports.py    the device's model at each port: labels, power, attenuators, alarms
    operations.py       operations of NETCONF as XML
    messages.py         messages of NETCONF
    markup.py           XML text: written, and read within bounds
    framing.py          messages in a stream of bytes

Start with `transaction.py`.
"""
