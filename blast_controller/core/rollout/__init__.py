"""Reservations: the device state of a part, and how devices are brought to it.

Start with `reservations.py`: every step on devices and what their answers mean; `reconciliation.py` compares a device
with what is wanted of it, `outbox.py` collects commands behind their records.
"""
