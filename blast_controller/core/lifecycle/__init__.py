"""Lifecycle of parts from their grant to their end."""
