"""`blast lab demo`: one lab, seven scenes, each measured; a table, a picture and JSON at the end."""

from __future__ import annotations

from mininet_topos.demo.command import register

__all__ = ["register"]
