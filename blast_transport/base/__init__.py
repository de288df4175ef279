"""Basics of all packages: errors by responsibility, threads, precedence of packets, reports.

Start with `errors.py`. Imports nothing of ours; every part of `blast_transport` may import it.
"""
