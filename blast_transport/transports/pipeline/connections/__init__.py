"""Connections between the nodes of a chain, and data transfer between a connection and the store."""
