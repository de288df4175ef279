"""The controller's own core, driven by the simulators, and what its decisions take.

Start with `core_driver.py`: the core on a virtual clock, with devices that answer at once.
"""
