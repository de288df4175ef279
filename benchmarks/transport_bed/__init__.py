"""A bed of network namespaces on which transports and tools carry the same file, timed by one clock.

`bed` builds the hosts, a packet network and light; `run` is one transfer on it; `tools/` starts each tool; `programs/`
are small programs that run on the hosts.
"""
