"""Frames and messages of the control connections, and the datagrams of the optical transport."""
