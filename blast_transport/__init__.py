"""Data plane of the hosts: reliable multicast, independent of any controller.

One sender, many receivers, one session (`session`), whose blocks (`blocks`) arrive over the optical path (`optical`:
paced UDP multicast, which is unidirectional), along a chain or trees of the receivers (`pipeline`, `trees`) or over one
TCP connection for each (`unicast`), and fill one store (`store`). All messages go over TCP (`wire`, `links`), between
authenticated hosts (`credentials`). `agent` is the daemon of a receiving host. The code that decides has no sockets and
no clock.
"""
