"""Measurements of the allocation figures; each module is a program too (`python -m blast_sim.measuring.…`)."""
