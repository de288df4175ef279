"""Reservations: the device state of a part, and how devices are brought to it."""
