"""Connections between hosts: dialing, accepting, admission, and framing."""
