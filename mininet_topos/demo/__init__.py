"""`blast lab demo`: one lab, seven scenes, measured and checked; a summary, a picture and JSON at the end."""
