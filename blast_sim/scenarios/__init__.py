"""Scenarios: files that say what to simulate, and how such a file is read."""
