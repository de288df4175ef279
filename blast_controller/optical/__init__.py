"""Cross-connects on the optical switches, over TL1."""
