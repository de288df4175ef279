"""Several controllers with one leader: following it, taking over from it, and stepping down."""
