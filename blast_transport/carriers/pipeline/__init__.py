"""The carrier `pipeline`: each node takes the data from the one before it, stores it, and passes it on to the next.

It is Kascade's protocol (IEEE CLUSTER 2014) with three differences. Who is dead is told by signs of life, which the
kernel of a frozen host cannot give. A node that writes a file sends again from that file whatever the next one misses,
so that nothing is forgotten. And a node that is slower than the session allows is skipped like a dead one.
`core` decides, without sockets and clocks; `node` and `source` act, a thread each.
"""
