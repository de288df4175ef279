"""Basics of the transport: errors by responsibility, engines, threads, precedence of packets, reports.

Start with `errors.py`. Imports `blast_base` at most; every part of `blast_transport` may import it.
"""
