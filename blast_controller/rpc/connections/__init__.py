"""Connections of clients: the server, frames and Thrift messages, and limits for each connection."""
