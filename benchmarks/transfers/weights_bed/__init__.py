"""A bed with a controller that grants its optical network, and the tools that push weights on it."""
