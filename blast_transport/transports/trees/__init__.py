"""The transport `trees`: several multicast trees at once, each of which brings its share of the blocks at its rate.

It is balanced multicasting (den Burger, Kielmann, Bal, SC 2005, section 3.3) with blocks in place of one part of the
data for each tree: the sender deals them to the trees in proportion to their rates, and hosts store and pass on whole
blocks. A phase is a plan, which does not change: who is lost, or cannot be reached, costs a phase with another plan.
`dealing`, `pacing`, `plan`, `pruning`, `oversight` and `protocol` decide, without sockets and clocks; `root` and `node`
act, a thread each, with an `edge` for each host that they pass on to and an `inlet` for each tree that enters them.
"""
