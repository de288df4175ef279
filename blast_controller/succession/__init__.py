"""Two or more controllers of which one leads: following it, taking over from it, and standing down."""
