"""The core's model: data, terms, and rules that follow from the data alone."""
