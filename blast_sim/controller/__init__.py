"""The controller's own core, driven by the simulators, and what its decisions take."""
