"""Simulated results computed again from their provenance, and compared.

Start with `repeating.py`.
"""
