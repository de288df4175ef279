"""The transport `pipeline`: each node takes the data from the one before it, stores it, and passes it on to the next.

It is Kascade's protocol (Martin et al., HPDIC at IPDPS 2014, section III), changed in these points:

- Join opens every connection, with the token of its phase: one agent serves many sessions, and lets nobody else in.
- Alive, both ways. Kascade pings over a second connection when a write hangs, which is when the buffers of both
  kernels are full; who has nothing to write sees nothing. Signs of life are missed within a second, whatever is
  written. Alive also carries how far a node is, which its predecessor waits for as for a credit.
- Who stands behind a silent node is probed before that one is given up, so that neighbors fail together.
- The last node does not connect to the first one. The report comes back along the chain in the body of PASSED, and
  QUIT (done) goes down after it, for nodes whose predecessor died in between.
- The first node connects when all have answered the phase, and data passes only then: who refuses before that is tried
  again. Whom a node leaves out it tells the sender at once, besides the report.
- A node that writes a file sends again from that file, so that FORGET is for commands and memory only.
- A node that is far slower than what comes to it, or than the session allows, is skipped like a dead one.
- END says where a phase ends and whether the data does, and QUIT why: the data may have begun by light, and go on by
it.
- What a chain brings is proven block by block, and repaired by the sender where it is wrong or missing.

`core` decides, without sockets and clocks; `node` and `source` act, a thread each.
"""
