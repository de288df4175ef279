"""The configuration file: its sections, what contradicts itself in it, and the files that it names."""
