"""What a lab takes from the machine: namespaces, devices, traffic shaping, processes, addresses, and Mininet itself.

Knows nothing of fabrics. `names.py` has the names of everything that a lab puts into the kernel, `netdev.py` creates
it, `errors.py` has all errors of the lab.
"""
