"""Who clients are, what they may do, and how often they may ask."""
