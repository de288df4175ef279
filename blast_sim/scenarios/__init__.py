"""Scenarios: files that define simulations, and their schema.

Start with `schema.py`.
"""
