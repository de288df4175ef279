"""Where transports are measured: a bed of network namespaces, the tools that are compared, one clock for all of them.

`bed` builds the hosts, a packet network and light; `run` is one transfer on it; `tools/` knows how each tool is run,
one file each; `programs/` are small ones of our own that run on the hosts.
"""
