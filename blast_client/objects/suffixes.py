"""How the file of an object is called at a receiver: the name that its sender gave, and what it holds."""

from __future__ import annotations

BYTES, ARRAY, TENSORS, FOLDER = ".bytes", ".npy", ".safetensors", ".tar"
SUFFIXES = ("", BYTES, ARRAY, TENSORS, FOLDER)
"""Without a suffix of ours: a file, sent as it is."""
