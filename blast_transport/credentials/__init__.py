"""Authentication: credentials of both ends, and connections whose ends are authenticated."""
