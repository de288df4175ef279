"""Agents on bare hosts: copied there over SSH, started, and ended afterwards.

Start with `on_demand.py`.
"""
