"""Transport `trees`: several multicast trees at once, each of which carries its share of the blocks at its rate.

It is balanced multicasting (den Burger, Kielmann, Bal, SC 2005, section 3.3) with blocks in place of one part of the
data for each tree: the sender distributes them to the trees in proportion to their rates, and hosts store and forward
whole blocks. A phase has a fixed plan: a lost or unreachable host requires another phase with another plan. `dealing`,
`pacing`, `plan`, `pruning`, `oversight` and `protocol` decide, without sockets and clocks; `root` and `node` act, in a
thread each, with an `edge` for each child and an `inlet` for each tree with a parent.
"""
