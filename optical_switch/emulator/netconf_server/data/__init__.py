"""Data models, and what operations do with data: filters and edits. Pure. Start with `schema.py`."""
