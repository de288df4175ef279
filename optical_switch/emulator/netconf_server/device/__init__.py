"""The switch behind the sessions: the effect of its configuration on the hardware. Start with `polatis.py`."""
