"""What the core is told, asks and knows of the world: data, the words for it, and rules that follow from it alone."""
