"""Interface and implementations of the transports, at both ends."""
