"""Running the controller: logs, the service manager, what an operator is told."""
