"""`blast lab demo`: one lab and seven scenes, measured and checked; ends with a summary, a picture and JSON."""
