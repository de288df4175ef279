"""Requests and reservations as what the journal keeps."""
