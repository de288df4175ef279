"""The recorder: the displayed state at every moment, in a separate file bounded by size and age."""
