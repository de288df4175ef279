"""Messages between two hosts of a tree, and reports of a host to the sender, without sockets."""
