"""Flow-level simulation: transfers that share links max-min fairly, event by event."""
