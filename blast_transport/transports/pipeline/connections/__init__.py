"""How the nodes of a chain reach each other, and how data goes between a connection and where it is kept."""
