"""`blast lab demo`: one lab, seven scenes, each measured; a table, a picture and JSON at the end."""
