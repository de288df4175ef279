"""What a node of a chain decides, and what it says to its neighbors: no sockets, no files, no clock."""
