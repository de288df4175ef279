"""Connections between hosts: dialled, accepted, let in at the door, and what is said on them in frames."""
