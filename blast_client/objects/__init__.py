"""Encoding of objects in standard file formats, and memory-mapped decoding, without pickle."""
