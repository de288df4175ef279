"""What the figures of allocation are measured with; each is a program too (`python -m blast_sim.measuring.…`)."""
