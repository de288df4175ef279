"""The journal in etcd, shared by controllers on several machines.

One of them is the leader, and only the leader writes. `keys` describes the layout, `ledger` the commits, and
`leadership` the election.
"""
