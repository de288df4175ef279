"""The fabric of a rack: scenarios for the compiled simulator `rack-fabric`, its results and its traces.

Start with `simulator.py`, which runs the compiled program, and `scenario.py`.
"""
