"""Measurements of the allocation figures; each module is a program, too. Start with `allocation_speed.py`.

python -m blast_sim.papers.blast.measuring.allocation_speed
"""
