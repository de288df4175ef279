"""Hypergraph b-matching: which multicast groups get light."""
