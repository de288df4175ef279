"""Connections of clients: the server, frames and Thrift messages, and limits for each connection.

Start with `framed_server.py`; `served_connection.py` is one client. Knows neither the core nor the interface.
"""
