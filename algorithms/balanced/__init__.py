"""Balanced multicasting: one multicast over several trees at once, whose rates share what the network can carry."""
