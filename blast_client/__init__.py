"""What an application imports: clients of the controller, and the `blast` command."""
