"""The core: events and a time in, commands out. No socket, clock or thread."""
