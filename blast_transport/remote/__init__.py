"""Agents on bare hosts: copied there over SSH, started, and ended afterwards."""
