"""The data plane on the hosts: reliable multicast. It knows no controller.

One sender, many receivers. The file goes once by light as paced UDP multicast (`datagram`, `pacing`), which has no
way back, in one go or as the light comes and goes (`light`); everything else goes over one TCP connection per receiver
on the packet network (`control`). `sender_core` and `receiver_core` decide, without sockets and clocks; `sender` and
`receiver` act.
"""
