"""Suffixes of files at a receiver; each indicates the kind of the object."""

from __future__ import annotations

BYTES, ARRAY, TENSORS, FOLDER = ".bytes", ".npy", ".safetensors", ".tar"
SUFFIXES = ("", BYTES, ARRAY, TENSORS, FOLDER)
"""All suffixes; a file that was sent as a file has none of ours."""
