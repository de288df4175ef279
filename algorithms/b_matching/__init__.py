"""Hypergraph b-matching: selection of the multicast groups that get optical resources."""
