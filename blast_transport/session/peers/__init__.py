"""The receivers of a session as their sender sees them: state, window, and missing blocks of each."""
