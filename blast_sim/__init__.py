"""Offline tools: allocations planned from a file, what hardware to buy, figures of the measurements.

Start with `sim_command.py`. Imports `algorithms` and the controller's core, which decides in simulations, too.
"""
