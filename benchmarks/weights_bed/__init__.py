"""The bed of the transports with a controller that grants its light, and the ways to push weights on it."""
