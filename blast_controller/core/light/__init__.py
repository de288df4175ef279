"""Light trees: structure, power budget, fault localization, and the device state of a group.

Start with `layout.py`: the light tree of a group as circuits and rules, and the steps from one to the next.
"""
