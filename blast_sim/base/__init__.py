"""Common parts of the simulators: errors, tables, options, files, stored cells.

Start with `sweep.py`, which runs cells, and `provenance.py`, which states where a result is from. Imports no other
part of the simulators.
"""
