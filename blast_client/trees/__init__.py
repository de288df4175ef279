"""Balanced trees as a way to send: who plans them, and who sees to them while the network changes."""
