"""Identities of clients, their permissions, and their rate limits."""
