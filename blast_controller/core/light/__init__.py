"""Where light goes: trees of splitters, whether it suffices, what is dark, and what devices hold for it."""
