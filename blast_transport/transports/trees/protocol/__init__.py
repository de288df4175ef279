"""What two hosts of a tree say to each other, and what a host says to the sender: bytes and meaning, no sockets."""
