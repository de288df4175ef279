"""Balanced multicasts for real: agents in emulated sites, a sender, and plans as the methods make them."""
