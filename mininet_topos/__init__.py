"""The lab: Mininet topologies with an emulated optical fabric, and the demo.

Start with `lab/lab.py`. Imports every package; no package imports it.
"""
