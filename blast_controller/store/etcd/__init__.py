"""The journal in etcd, which controllers on several machines share: one of them leads, and only it can write.

How it is laid out is in `keys`, how a commit is written in `ledger`, and who may write in `leadership`.
"""
