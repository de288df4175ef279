"""Pictures of the balanced multicast's evaluation."""
