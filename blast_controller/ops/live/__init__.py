"""The server side of the live page: sessions, updates to all pages, and actions of operators."""
