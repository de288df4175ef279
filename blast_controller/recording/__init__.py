"""The flight recorder: what was shown at every moment, in a file of its own that is bounded by bytes and days."""
