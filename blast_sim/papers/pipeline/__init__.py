"""Pictures of the Kascade paper's evaluation.

Start with `figures.py`.
"""
