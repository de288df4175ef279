"""Policies and methods from outside the package: the interface, and how commands find and check plug-ins.

A plug-in is named `module:attribute`, or by an entry point of the group `blast.policies` or `blast.methods`. Modules
are searched on Python's path, and last in the current folder. Workers import a plug-in by the same name, so it must be
installed (or on PYTHONPATH) wherever cells run.
"""

from blast_sim.plugins.interface import INTERFACE_VERSION, MethodClass, MethodFunction, Policy

__all__ = ["INTERFACE_VERSION", "MethodClass", "MethodFunction", "Policy"]
