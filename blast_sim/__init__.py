"""Offline tools: allocations planned from a file, what hardware to buy, figures of the measurements."""
