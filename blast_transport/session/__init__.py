"""One session between a sender and many receivers, over whatever transports there are."""
