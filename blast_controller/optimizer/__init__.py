"""The optimizer: a process of its own that thinks about decisions, and how it is asked."""
