"""Operation of the controller: logs, the service manager, metrics, and the live page."""
