"""Messages of NETCONF: framing, XML, and errors in replies. Start with `framing.py`."""
