"""Fabric planning: prices, hardware, the optimization program, static trees."""
