"""Measurements of the allocation figures; each module is a program, too.

python -m blast_sim.papers.blast.measuring.allocation_speed
"""
