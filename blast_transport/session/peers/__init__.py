"""The receivers of a session as its sender sees them: who keeps up, who is waited for, and what each still misses."""
