"""Transport `pipeline`: each node receives the data from its predecessor, stores it, and forwards it to its successor.

It is Kascade's protocol (Martin et al., HPDIC at IPDPS 2014, section III), with these changes:

- Join opens every connection, with the token of its phase: an agent serves many sessions, and rejects other clients.
- Heartbeat, in both directions. Kascade pings over a second connection when a write hangs, which is when the buffers of
  both kernels are full; a node with nothing to write detects nothing. Missing heartbeats are detected within a second,
  whatever is written. Heartbeat also carries the position of a node, which is the credit for its predecessor.
- Nodes behind a silent node are probed before that node is given up, so that neighbors fail together.
- The last node does not connect to the first one. The report returns along the chain in the body of PASSED, and
  QUIT (done) follows it down, for nodes whose predecessor died in between.
- The first node connects when all have answered the phase, and data passes only then: a node that refuses earlier is
  tried again. A node that excludes another one reports this to the sender at once, besides the report.
- A node that writes a file retransmits from that file, so that FORGET is for commands and memory only.
- A node that is far slower than the data arrives, or than the session permits, is skipped like a dead one.
- END has the end of a phase and whether the data ends there, and QUIT the reason: the data may begin and continue with
  other transports.
- Data of a chain is verified block by block; the sender repairs wrong and missing blocks.

`core` decides, without sockets and clocks; `node` and `source` act, in a thread each.
"""
