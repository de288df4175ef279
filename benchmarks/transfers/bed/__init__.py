"""A bed of network namespaces on which transports and tools send the same file, timed by one clock.

`bed` builds the hosts, a packet network and an optical network; `run` is one transfer on it; `tools/` starts each tool;
`programs/` has small programs that run on the hosts.
"""
