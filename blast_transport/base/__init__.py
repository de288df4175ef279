"""Basics of all packages: errors by responsibility, threads, precedence of packets, reports."""
