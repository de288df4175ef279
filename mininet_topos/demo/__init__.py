"""`blast lab demo`: one lab and seven scenes, measured and checked; ends with a summary, a picture and JSON.

Start with `play.py`, which runs the scenes.
"""
