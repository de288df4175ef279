"""A policy and two methods for the simulators of Blast: a template for your own."""
