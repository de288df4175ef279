"""Several controllers, their etcd, devices and clients in one process, on a virtual clock, for tests of succession."""
