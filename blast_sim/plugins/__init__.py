"""Policies and methods from outside the package: how a command finds one, and what it checks.

A plug-in is named `module:attribute`, or by an entry point of the group `blast.policies` or `blast.methods`. A module
is looked for where Python looks, and last in the current folder. Workers import it by the same name, so that it has to
be installed (or on PYTHONPATH) wherever cells run.
"""

from blast_sim.plugins.interface import INTERFACE_VERSION, MethodClass, MethodFunction, Policy

__all__ = ["INTERFACE_VERSION", "MethodClass", "MethodFunction", "Policy"]
