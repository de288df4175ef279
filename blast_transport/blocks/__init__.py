"""How a file or stream is cut into blocks, which of them are held, and what proves them right."""
