"""Pictures of the Kascade paper's evaluation."""
