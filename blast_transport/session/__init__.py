"""One session between a sender and many receivers, over whatever carriers there are."""
