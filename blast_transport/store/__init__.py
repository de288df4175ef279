"""Where data comes from at the sender, and where it goes at a receiver: files, streams, commands, memory."""
