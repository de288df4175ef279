"""The data plane on the hosts: reliable multicast. It knows no controller.

One sender, many receivers, one session (`session`), whose blocks (`blocks`) come by light (`optical`: paced UDP
multicast, which has no way back), along a chain of the receivers (`pipeline`) or over one TCP connection for each, and
fill one store (`store`). Everything that is said goes over TCP (`wire`, `links`), between hosts that have proved who
they are (`credentials`). `agent` is what waits on a host. What decides has no sockets and no clock.
"""
