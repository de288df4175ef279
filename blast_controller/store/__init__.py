"""The journal: the controller's intentions and actions, durable before any device receives a command."""
