"""Traces in the lab: scaled down, with real controller, devices and data."""
