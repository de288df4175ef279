"""The parts of the machine that a lab uses: namespaces, devices, shaping, processes, addresses, Mininet itself.

Knows nothing of fabrics. `names.py` has the names of everything that a lab puts into the kernel, `netdev.py` creates
it, `errors.py` has all errors of the lab.
"""
