"""What becomes of parts while they have light, and when they lose it."""
