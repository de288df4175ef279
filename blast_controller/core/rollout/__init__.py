"""Reservations: the device state of a part, and how devices are brought to it.

Start with `reservations.py`: every step on devices and what their answers mean; `reconciliation.py` compares the
state of a device with the desired one, `outbox.py` puts records before the commands that depend on them.
"""
