"""Scenarios: files that define simulations, and their schema."""
