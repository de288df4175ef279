"""Inventory of the fabric: holders, unusable elements with reasons, and available resources.

Start with `inventory.py`: an account for each port and splitter. Imports the core's model.
"""
