"""Balanced trees as a transport: planning, and adaptation to changes of the network."""
