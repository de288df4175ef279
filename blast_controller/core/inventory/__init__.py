"""Inventory of the fabric: holders, unusable elements with reasons, and available resources."""
