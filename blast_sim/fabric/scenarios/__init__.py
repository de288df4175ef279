"""Scenarios of the rack fabric that come with the program."""
