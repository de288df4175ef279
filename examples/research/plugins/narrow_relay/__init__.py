"""Example plug-in for the simulators: a policy and two methods, as a template for your own."""
