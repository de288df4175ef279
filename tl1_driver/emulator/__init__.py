"""An optical circuit switch that speaks TL1 over TCP, on the hardware of `optical_switch.emulator`.

Start with `agent.py`; `language.py` is the part of a vendor.
"""
