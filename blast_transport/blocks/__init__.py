"""Blocks of a file or stream: layout, map of held blocks, and digests."""
