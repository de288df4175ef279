"""The displayed state at a moment as named JSON rows, for pages and the recorder."""
