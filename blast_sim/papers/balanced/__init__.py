"""Pictures of the balanced multicast's evaluation.

Start with `figures.py`.
"""
