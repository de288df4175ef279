"""What there is of the fabric: who holds what, what cannot be used and why, and how much of it anyone can have."""
