"""Reservations: what devices hold for a part, and how they are brought there."""
