"""Pictures of the Blast paper's evaluation."""
