"""An optical circuit switch that speaks TL1 over TCP.

Start with `agent.py`; `language.py` is the part of a vendor.
"""
