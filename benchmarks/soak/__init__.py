"""The soak: honest and hostile clients at a real lab for an hour, and what it must hold at its end."""
