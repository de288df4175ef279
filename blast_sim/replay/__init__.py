"""Traces at full size on a simulated network, with the project's own controller core."""
