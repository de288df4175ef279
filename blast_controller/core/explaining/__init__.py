"""Why a request waits, when it could start, and what would help."""
