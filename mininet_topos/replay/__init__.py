"""Traces in the lab: scaled down, with real controller, devices and data.

Start with `translating.py`: the scaling of a trace to a small lab.
"""
