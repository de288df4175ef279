"""Scheduling: which part is served next with which resources, and which trees stay warm."""
