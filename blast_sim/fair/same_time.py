"""Which events are one event."""

SAME_TIME = 1e-12
"""Flows whose ends are no further apart than this share of the time end together: rounding has parted them."""
